#!/usr/bin/env bash
# Compiles the public libgc headers: each alone, and all together with code that uses their macros,
# with every combination of the macros that change them, without a warning.
#
#   headers_test.sh gcc|g++|clang|clang++ STANDARD
#
# Exit status: 0 fine, 1 not, 77 the compiler is not installed (a skipped test).
set -euo pipefail

unset CDPATH # cd would look there first
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/headers.sh
source "$here/../support/headers.sh"
standard=$2
find_compiler "$1"

# Any header may come first, and twice.
headers=(gc.h gc/gc.h gc/gc_mark.h gc/gc_typed.h gc/gc_gcj.h gc/gc_disclaim.h gc/gc_inline.h
  gc/gc_tiny_fl.h gc/gc_pthread_redirects.h gc/gc_config_macros.h gc/gc_version.h
  gc/gc_backptr.h gc/leak_detector.h gc/javaxfc.h)
[[ $extension == c ]] || headers+=(gc_cpp.h gc/gc_cpp.h gc/gc_allocator.h)
# The oldest programs are what one looks at for leaks.
[[ $extension == cpp ]] || old=(-std=c89 -pedantic)
for header in "${headers[@]}"; do
  printf '/* %s */\n#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' \
    "$header" "$header" "$header" >"$work/alone.$extension"
  try "$work/alone.$extension" -fsyntax-only
  try "$work/alone.$extension" -fsyntax-only -DGC_THREADS
  [[ -z ${old-} ]] || try "$work/alone.$extension" -fsyntax-only -DGC_REQUIRE_WCSDUP "${old[@]}"
done

variants=('' -DGC_DEBUG '-DGC_DEBUG -DGC_DEBUG_REPLACEMENT' -DGC_BUILD -DGC_REQUIRE_WCSDUP
  -DGC_OOM_FUNC_RETURNS_ALIAS -DNDEBUG -DGC_I_HIDE_POINTERS
  '-DGC_DONT_EXPAND -DGC_FORCE_UNMAP_ON_GCOLLECT -DGC_MAX_RETRIES=2 -DGC_IGNORE_WARN
   -DGC_ALLOCD_BYTES_PER_FINALIZER=100 -DGC_FREE_SPACE_DIVISOR=4 -DGC_FULL_FREQ=3
   -DGC_TIME_LIMIT=50 -DGC_MARKERS=2 -DGC_SIG_SUSPEND=10 -DGC_SIG_THR_RESTART=12
   -DGC_MAXIMUM_HEAP_SIZE=100000000 -DGC_INITIAL_HEAP_SIZE=1000000'
  -DGC_DONT_GC)
[[ $extension == c ]] || variants+=(-DGC_NAMESPACE -DGC_NAME_CONFLICT -DGC_ATOMIC_UNCOLLECTABLE
  -DJACKDAW_REPLACE_GLOBAL_NEW -DGC_NEW_ABORTS_ON_OOM -DGC_NO_OPERATOR_NEW_ARRAY -fno-exceptions)
for variant in "${variants[@]}"; do
  for threads in '' -DGC_THREADS '-DGC_THREADS -DGC_NO_THREAD_REDIRECTS'; do
    # Unquoted: each is a list of words.
    # shellcheck disable=SC2086
    try "$here/headers_all.$extension" -fsyntax-only $variant $threads
  done
done

finish
