#!/usr/bin/env bash
# examples_test.sh HEADER SOURCE: every line of the example in the header's first comment is a line of
# the source, which is compiled and run. (Not the comments in it, and what leaves something out.)
set -euo pipefail

missing=0
found=0
while IFS= read -r line; do
  found=$((found + 1))
  grep -qF -- "$line" "$2" || {
    missing=$((missing + 1))
    echo "$2 does not have this line of $1: $line"
  }
done < <(awk '
  /^#/ { exit }
  {
    if (!sub(/^ \*   /, "") && !sub(/^\/\/   /, "")) next
    sub(/^ +/, "")
    if ($0 != "" && $0 !~ /\.\.\./ && $0 !~ /^(\/\/|\/\*)/) print
  }' "$1")

((found > 0)) || echo "$1 has no example"
((found > 0 && missing == 0))
