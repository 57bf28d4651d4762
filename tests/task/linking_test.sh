#!/usr/bin/env bash
# Tasks that throw where there is other code beside them: some that was compiled without
# exceptions, whichever comes first for the linker, and a plug-in with a C++ run-time of its own in
# a program that exports its functions. And code of the large model. And thread-local words of the
# library's in a function that goes on in another thread, as each compiler reads them.
#
#   linking_test.sh g++|clang++ LIBRARY-FOLDER
#
# Exit status: 0 fine, 1 not, 77 the compiler is not installed, or a part of it (a skipped test).
set -euo pipefail

libraries=$2
unset CDPATH # cd would look there first
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/headers.sh
source "$here/../support/headers.sh"
standard=c++20
find_compiler "$1"
sources=$here/linking

object() { # name, source, flags
  "$compiler" -std="$standard" -fPIC -Wall -Wextra -Werror -I "$include" "${@:3}" \
    -c -o "$work/$1.o" "$sources/$2.cpp"
}
link() { # name, arguments
  "$compiler" -o "$work/$1" "${@:2}" -L "$libraries" -ljackdaw -ldl
}
check() { # title, command
  compiled=$((compiled + 1))
  local mode
  for mode in deque barrier; do
    if ! env LD_LIBRARY_PATH="$libraries:$work" JACKDAW_TASK_MODE="$mode" \
      timeout -k 5 60 "${@:2}"; then
      echo "FAILED: $1, $mode"
      failures=$((failures + 1))
    fi
  done
}

for level in -O0 -O2; do
  object calm calm "$level" -fno-exceptions
  object throwing throwing "$level"
  object main main "$level"
  object loading main "$level" -DWITH_PLUGIN
  parts=("$work/calm.o" "$work/throwing.o")
  link program "$work/main.o" "${parts[@]}"
  check "$level, calm first" "$work/program"
  link program "${parts[1]}" "${parts[0]}" "$work/main.o"
  check "$level, throwing first" "$work/program"
  link libcalm.so -shared "${parts[0]}"
  link libthrowing.so -shared "${parts[1]}"
  link program "$work/main.o" "$work/libcalm.so" "$work/libthrowing.so"
  check "$level, two libraries, calm first" "$work/program"
  link program "$work/main.o" "$work/libthrowing.so" "$work/libcalm.so"
  check "$level, two libraries, throwing first" "$work/program"

  link program -rdynamic "$work/loading.o" "${parts[1]}"
  link plugin.so -shared "${parts[1]}"
  check "$level, a plug-in" "$work/program" "$work/plugin.so"
  static=$("$compiler" -print-file-name=libstdc++.a)
  if [[ $static != /* ]]; then
    leave_out "a plug-in with a run-time of its own, as there is no libstdc++.a"
    continue
  fi
  link plugin.so -shared -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL "${parts[1]}"
  check "$level, a plug-in with a run-time of its own" "$work/program" "$work/plugin.so"
done

parts=()
for part in calm throwing main; do
  object $part $part -O2 -mcmodel=large
  parts+=("$work/$part.o")
done
link program "${parts[@]}"
check "the large code model" "$work/program"

for flags in -O0 -O2 -O3 "-O2 -fPIE" "-O2 -masm=intel"; do
  # shellcheck disable=SC2086 # several words
  object moved moved $flags
  link program "$work/moved.o"
  check "thread-local words, $flags" "$work/program"
done

finish
