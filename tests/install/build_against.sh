#!/usr/bin/env bash
# Installs into a temporary prefix and builds and runs a C program in each of the documented ways:
# through bdw-gc.pc and jackdaw.pc, each shared and static, and by `jackdaw run`; where it was installed, without what
# only builds need, and in a tree that was moved. Each run checks which library it loaded.
#
#   build_against.sh CMAKE BUILD-FOLDER C-COMPILER
set -euo pipefail

cmake=$1
build=$2
cc=$3
unset CDPATH # cd would look there first
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
prefix=$work/first
# install PREFIX [ROOT]: with ROOT as a packager does, under a root that the prefix is below later.
install() {
  DESTDIR=${2-} "$cmake" --install "$build" --prefix "$1" >"$work/log" || {
    cat "$work/log"
    exit 1
  }
}
# use ROOT: pkg-config finds what is installed there.
use() {
  PKG_CONFIG_PATH=$(find "$1" -type d -name pkgconfig | tr '\n' ':')
  export PKG_CONFIG_PATH
}
cd "$work"
install "$(basename "$prefix")" # what is recorded is a whole path all the same
use "$prefix"

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

# Where a program runs there may be nothing of what only builds need, pkgconfig/ included.
# pkg-config prints words.
# shellcheck disable=SC2046
check recorded-bdw-gc "$prefix/" $(pkg-config --cflags --libs bdw-gc)
# shellcheck disable=SC2046
check recorded-jackdaw "$prefix/" $(pkg-config --cflags --libs jackdaw)
cp -r "$prefix" "$work/moved"
find "$prefix" -depth \( -name pkgconfig -o -name include -o -name '*.a' \) -exec rm -r {} +
for program in recorded-bdw-gc recorded-jackdaw; do
  if "$prefix/$program" "$prefix/"; then
    echo "ok: $program, without what only builds need"
  else
    echo "FAILED: $program does not find its library without what only builds need"
    failures=$((failures + 1))
  fi
done
rm -r "$prefix"

# says WANTED OPTIONS...: pkg-config records the folder WANTED, or none if that is empty.
says() {
  local wanted=$1 text
  shift
  text=$(pkg-config --libs "$@" | tr ' ' '\n' | sed -n 's/^-Wl,-rpath,//p')
  if [[ $text == "$wanted" ]]; then
    echo "ok: $* records ${wanted:-nothing}"
  else
    echo "FAILED: pkg-config --libs $* has the run path '$text', not '$wanted'"
    failures=$((failures + 1))
  fi
}
install /usr "$work/root"
use "$work/root"
says /usr/lib/jackdaw bdw-gc
PKG_CONFIG_SYSROOT_DIR=$work/root says /usr/lib/jackdaw bdw-gc
says "" jackdaw # the loader looks there anyway
says "" --define-variable=runpath= bdw-gc

# Moved after installation. But for the run path, nothing installed may remember where it was put
# first.
prefix=$work/moved
use "$prefix"
jackdaw_lib=$(pkg-config --variable=libdir jackdaw)
for package in bdw-gc jackdaw; do
  lib=$(pkg-config --variable=libdir "$package")
  # shellcheck disable=SC2046
  check "$package" "$prefix/" \
    $(pkg-config --define-variable=runpath=-Wl,-rpath,"$lib" --cflags --libs "$package")
  # glibc does not start a static program that has a run path and a place chosen when it is loaded.
  # shellcheck disable=SC2046
  check "$package-static-pie" "" -static-pie -fPIE \
    $(pkg-config --static --define-variable=runpath= --cflags --libs "$package")
done
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
