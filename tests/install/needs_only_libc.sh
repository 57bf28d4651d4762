#!/usr/bin/env bash
# libgc.req.need: a C program that swaps its libgc must gain no other library: ours need libc, and at most the
# dynamic loader, and are fully bound when loaded.
#
#   needs_only_libc.sh LIBRARY...
set -euo pipefail

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

for library in "$@"; do
  dynamic=$(readelf --wide --dynamic "$library")
  needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
  for name in $needed; do
    case $name in
      libc.so.6 | ld-linux*.so.*) ;;
      *) fail "$library needs $name" ;;
    esac
  done
  [[ -n $needed ]] || fail "$library needs nothing, not even libc: is it a shared library?"
  grep -q BIND_NOW <<<"$dynamic" || fail "$library is not bound when loaded (-z now)"
  # Symbols of the C++ run-time would have to come from whoever loads us.
  runtime=$(nm --dynamic --undefined-only "$library" | grep -E ' (_ZSt|_Zn[wa]|_Zd[la]|__cxa_(throw|guard))' || true)
  [[ -z $runtime ]] || fail "$library uses the C++ run-time:"$'\n'"$runtime"
  # Without thread-safe statics (src/CMakeLists.txt) nobody waits for such a variable's initialisation.
  guards=$(nm --demangle "$library" | grep 'guard variable' || true)
  [[ -z $guards ]] || fail "$library has functions' static variables that are initialised at run time:"$'\n'"$guards"
  echo "$library: soname $(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic"), needs ${needed//$'\n'/ }"
done
((failures == 0))
