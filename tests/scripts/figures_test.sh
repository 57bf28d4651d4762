#!/usr/bin/env bash
# docs/guide/figures.md tells of every key that is written, and of none that is not.
#
#   figures_test.sh JACKDAW PROGRAM-OF-LIBGC PROGRAM-WITH-TYPED-OBJECTS COUNTING-LIBRARY
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
jackdaw=$1 untyped=$2 typed=$3 counting=$4
page=$repo/docs/guide/figures.md

# keys FILE...: of the objects in JSON files, each once.
keys() { cat "$@" | grep -oE '"[a-z_]+":' | tr -d '":' | sort -u; }
# words: those of the standard input that may be keys.
words() { grep -oE "\`[a-z_]+\`" | tr -d "\`" | sort -u; }
# told HEADING: the keys in the first column below it, or in a sentence there.
told() {
  awk -v heading="## $1" '/^## /{inside = $0 == heading} inside' "$page" |
    sed -E 's/^(\|[^|]*\|).*/\1/' | words
}
# same WHAT WRITTEN TOLD: two lists of keys are alike.
same() {
  expect 0 "" diff --label "$1, written" --label "$1, told" <(printf '%s\n' "$2") <(printf '%s\n' "$3")
}

"$jackdaw" run --stats-json "$scratch/run.json" -- "$untyped" 14 10 >"$scratch/out" 2>&1
same "run --stats-json" "$(keys "$scratch/run.json")" "$(told "One run")"

# Two libraries need not be different ones.
library=$(dirname "$counting")/../../libgc.so.1
"$jackdaw" run --compare --runs 1 --library "$library" --system-library "$library" \
  --stats-json "$scratch/compare.json" -- "$untyped" 14 10 >"$scratch/out" 2>&1 || true
[[ -s $scratch/compare.json ]]
keys "$scratch/compare.json" >"$scratch/written"
expect 1 "" grep -x -v -f <(words <"$page") "$scratch/written"

JACKDAW_STATISTICS=$scratch/typed.json JACKDAW_TIME_SWEEP=1 "$typed" 0 >"$scratch/out"
LD_LIBRARY_PATH=$(dirname "$counting") JACKDAW_STATISTICS=$scratch/counting.json \
  "$untyped" 14 10 >"$scratch/out" 2>&1
[[ -s $scratch/typed.json && -s $scratch/counting.json ]]
same JACKDAW_STATISTICS "$(keys "$scratch/typed.json" "$scratch/counting.json")" \
  "$(told "What the collector measured")"

expect_finish
