#!/usr/bin/env bash
# Prints what a shared library exports, one symbol a line, sorted by name: "T name" for a function,
# "D name size" for data. Symbols that the linker itself makes up have no type and are left out:
# _end is the only one that bdwgc's library shows.
#
#   list-exports.sh LIBRARY
#
# exported-symbols.txt in this folder is the output for Debian 12's libgc.so.1 (libgc1 8.2.2).
set -euo pipefail

# Columns: Num Value Size Type Bind Visibility Section Name. Large sizes are in hexadecimal.
readelf --wide --dyn-syms "$1" | while read -r number _ size type bind visibility section name _; do
  [[ $number =~ ^[0-9]+:$ && $section != UND && $bind != LOCAL ]] || continue
  [[ $visibility == DEFAULT || $visibility == PROTECTED ]] || continue
  case $type in
    FUNC | IFUNC) echo "T ${name%%@*}" ;;
    OBJECT | TLS) echo "D ${name%%@*} $((size))" ;;
  esac
done | LC_ALL=C sort -k2
