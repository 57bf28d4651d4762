# For tests that compile public headers (sourced; set -euo pipefail is on):
#
#   find_compiler KIND     sets `compiler`, `kind` and `extension`; ends the test with 77, skipped,
#                          where there is no such compiler. KIND: gcc, g++, clang or clang++.
#   try FILE FLAGS...      compiles without a warning; counts in `compiled` and `failures`
#   leave_out WHAT         a part that can't be tried here: the test is skipped if the rest is fine
#   finish                 says how it went, with the exit status
#
# `work` is a directory that goes away; `include` is where the headers are; `standard` is the
# test's to set.
# shellcheck shell=bash

unset CDPATH # cd would look there first
include=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../include" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiled=0
failures=0
left_out=0

# shellcheck disable=SC2034
find_compiler() {
  kind=$1
  compiler=
  extension=c
  [[ $kind != *++ ]] || extension=cpp
  # Debian installs clang under a name with its version.
  local candidate
  for candidate in "$kind" "${kind}-16" "${kind}-12"; do
    if command -v "$candidate" >/dev/null; then
      compiler=$candidate
      return
    fi
  done
  echo "no $kind here (apt-get install ${kind%++} or clang-16)"
  exit 77
}

# The file's first line is shown with an error.
try() {
  compiled=$((compiled + 1))
  # shellcheck disable=SC2154
  if ! "$compiler" -std="$standard" -Wall -Wextra -pedantic -Werror -I "$include" \
    "${@:2}" -c -o "$work/object.o" "$1" 2>"$work/errors"; then
    failures=$((failures + 1))
    echo "FAILED: $compiler -std=$standard ${*:2} $(head -1 "$1")"
    cat "$work/errors"
  fi
}

leave_out() {
  left_out=$((left_out + 1))
  echo "left out: $1"
}

finish() {
  echo "$compiler -std=$standard: $compiled compilations, $failures failures, $left_out left out"
  ((failures == 0)) || exit 1
  ((left_out == 0)) || exit 77
}
