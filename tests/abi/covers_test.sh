#!/usr/bin/env bash
# Does a program use every symbol of needed-symbols.txt, so that its test means something for each?
# Data must have been copied into it (a copy relocation): that is the hard case for the library.
#
#   covers_test.sh PROGRAM
set -euo pipefail

program=$1
here=$(dirname "${BASH_SOURCE[0]}")
failures=0

used=$(readelf --wide --dyn-syms "$program" | awk '{ sub(/@.*/, "", $8); print $8 }')
copied=$(readelf --wide --relocs "$program" | awk '/_COPY/ { sub(/@.*/, "", $5); print $5 }')
while read -r symbol; do
  if ! grep -qx "$symbol" <<<"$used"; then
    echo "FAILED: $program does not use $symbol"
    failures=$((failures + 1))
  elif grep -q "^D $symbol " "$here/exported-symbols.txt" && ! grep -qx "$symbol" <<<"$copied"; then
    echo "FAILED: $program has no copy of $symbol"
    failures=$((failures + 1))
  fi
done <"$here/needed-symbols.txt"
echo "$(wc -l <"$here/needed-symbols.txt") symbols, $(grep -c ^GC_ <<<"$copied") of libgc's variables copied"
((failures == 0))
