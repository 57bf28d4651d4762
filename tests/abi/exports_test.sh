#!/usr/bin/env bash
# Is a library the same to the dynamic linker as the libgc.so.1 it stands in for?
# (libgc.req.exports)
#
#   exports_test.sh LIBRARY [LIBRARY-IT-MAY-NEED-PATTERN...]
#
# Every symbol of exported-symbols.txt is there, as the same sort of thing; data have the same size,
# because a program that is not position-independent has a copy of that many bytes. GC_arrays may
# have any size: no header declares it, so no program can have a copy of it. Nothing else is
# exported but what allowed-extra.txt allows. The soname is libgc.so.1, and no library but libc and
# the dynamic linker is needed; the patterns allow more (a sanitizer's run-time).
set -euo pipefail

library=$1
shift
here=$(dirname "${BASH_SOURCE[0]}")
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

dynamic=$(readelf --wide --dynamic "$library")
soname=$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic")
[[ $soname == libgc.so.1 ]] || fail "the soname is '$soname', not libgc.so.1"
while IFS= read -r needed; do
  allowed=
  for pattern in libc.so.6 'ld-linux*.so.*' "$@"; do
    # shellcheck disable=SC2053 # the right side is a pattern on purpose
    [[ $needed != $pattern ]] || allowed=yes
  done
  [[ -n $allowed ]] || fail "it needs $needed"
done < <(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")

declare -A ours=()
while read -r kind name size; do
  ours[$name]="$kind $size"
done < <("$here/list-exports.sh" "$library")
((${#ours[@]})) || fail "it exports nothing"

declare -A wanted=()
while read -r kind name size; do
  wanted[$name]=yes
  if [[ -z ${ours[$name]:-} ]]; then
    fail "it does not export $name"
  elif [[ $name == GC_arrays ]]; then
    [[ ${ours[$name]} == "D "* ]] || fail "GC_arrays is not data"
  elif [[ ${ours[$name]} != "$kind $size" ]]; then
    fail "$name is '${ours[$name]}', not '$kind $size' (T function, D data and its size)"
  fi
done <"$here/exported-symbols.txt"

mapfile -t patterns < <(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$here/allowed-extra.txt")
extra=0
for name in "${!ours[@]}"; do
  [[ -z ${wanted[$name]:-} ]] || continue
  allowed=
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053 # the right side is a pattern on purpose
    [[ $name != $pattern ]] || allowed=yes
  done
  [[ -n $allowed ]] || fail "it exports $name, which allowed-extra.txt does not allow"
  extra=$((extra + 1))
done

echo "${#wanted[@]} symbols wanted, ${#ours[@]} exported, $extra of them extra, $failures failures"
((failures == 0))
