#!/usr/bin/env bash
# Configures with folders that are absolute, as GNUInstallDirs allows and Nix's hooks pass them, and
# checks that the .pc files name them.
#
#   absolute_folders.sh CMAKE SOURCE-FOLDER
set -euo pipefail

cmake=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

"$cmake" -S "$source" -B "$work/build" -G Ninja -DJD_BUILD_TOOLS=OFF -DJD_BUILD_TESTS=OFF \
  -DCMAKE_INSTALL_PREFIX="$root" -DCMAKE_INSTALL_LIBDIR="$root/lib" \
  -DCMAKE_INSTALL_INCLUDEDIR="$work/headers" >"$work/configure.log" 2>&1 || {
  cat "$work/configure.log"
  exit 1
}

failures=0
# wants PACKAGE VARIABLE FOLDER
wants() {
  local is
  is=$(PKG_CONFIG_PATH=$work/build pkg-config --variable="$2" "$1")
  if [[ $is == "$3" ]]; then
    echo "ok: $1 $2"
  else
    echo "FAILED: $1.pc has $2=$is, not $3"
    failures=$((failures + 1))
  fi
}
wants jackdaw libdir "$root/lib"
wants jackdaw includedir "$work/headers"
wants bdw-gc libdir "$root/lib/jackdaw"
wants bdw-gc includedir "$work/headers/jackdaw-gc"
((failures == 0))
