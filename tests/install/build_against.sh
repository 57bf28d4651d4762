#!/usr/bin/env bash
# Installs into a temporary prefix and builds and runs a C program in each of the documented ways:
# through bdw-gc.pc and jackdaw.pc, each shared and static, and by `jackdaw run`. Each run checks which library it
# loaded.
#
#   build_against.sh CMAKE BUILD-FOLDER C-COMPILER
set -euo pipefail

cmake=$1
build=$2
cc=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --prefix "$prefix" >"$prefix/install.log" || {
  cat "$prefix/install.log"
  exit 1
}

# Moved after installation: nothing installed may remember where it was put first.
mv "$prefix" "$prefix-moved"
prefix=$(realpath "$prefix-moved")
PKG_CONFIG_PATH=$(find "$prefix" -type d -name pkgconfig | tr '\n' ':')
export PKG_CONFIG_PATH

failures=0
# check NAME WANTED-LIBRARY FLAGS...: WANTED-LIBRARY is what the program must find itself on.
check() {
  local name=$1 wanted=$2
  shift 2
  if "$cc" -Wall -Wextra -Werror "$here/program.c" -o "$prefix/$name" "$@" &&
    "$prefix/$name" "$wanted"; then
    echo "ok: $name"
  else
    echo "FAILED: $name ($cc program.c $*)"
    failures=$((failures + 1))
  fi
}

# pkg-config prints words.
# shellcheck disable=SC2046
check bdw-gc "$prefix/" $(pkg-config --cflags --libs bdw-gc)
jackdaw_lib=$(pkg-config --variable=libdir jackdaw)
# shellcheck disable=SC2046
check jackdaw "$prefix/" $(pkg-config --cflags --libs jackdaw)
# The system may have another collector's libgc.a.
# shellcheck disable=SC2046
check bdw-gc-static "" -static $(pkg-config --static --cflags --libs bdw-gc)
if [[ -x $prefix/bdw-gc-static && $(nm -C "$prefix/bdw-gc-static") != *jd::alloc::* ]]; then
  echo "FAILED: bdw-gc.pc links another collector statically"
  failures=$((failures + 1))
fi
# shellcheck disable=SC2046
check static "$prefix/static" $(pkg-config --cflags jackdaw) "$jackdaw_lib/libjackdaw.a" -lpthread

# The installed command finds the installed library.
if [[ -x $prefix/bin/jackdaw ]]; then
  # shellcheck disable=SC2046
  "$cc" "$here/program.c" -o "$prefix/elsewhere" $(pkg-config --cflags bdw-gc) \
    -L"$(pkg-config --variable=libdir bdw-gc)" -lgc
  if "$prefix/bin/jackdaw" run -- "$prefix/elsewhere" "$prefix/"; then
    echo "ok: jackdaw run"
  else
    echo "FAILED: the installed jackdaw does not run a program on the installed library"
    failures=$((failures + 1))
  fi
  if [[ $("$prefix/bin/jackdaw" run --malloc -- /bin/sh -c 'cat /proc/self/maps') == *libjackdaw-malloc.so* ]]; then
    echo "ok: jackdaw run --malloc"
  else
    echo "FAILED: the installed jackdaw does not serve a program's malloc"
    failures=$((failures + 1))
  fi
fi

version=$(pkg-config --modversion bdw-gc)
[[ $version == 8.2.2 ]] || {
  echo "FAILED: bdw-gc.pc says version $version; programs ask for 8.2.2's interface"
  failures=$((failures + 1))
}
((failures == 0))
