#!/usr/bin/env bash
# bench/cachegrind.py counts on a small input, with three strategies, and says what it lacks.
#
#   tests/scripts/cachegrind_test.sh LIBGC
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

library=$1
# The interpreter itself: a wrapper may need the PATH that a test takes away.
python=$(python3 -c "import sys; print(sys.executable)") || {
  echo "Python 3 is not installed"
  exit 77
}
script=$repo/bench/cachegrind.py

expect 2 "--ours" "$python" "$script"
expect 2 "there is no $scratch/libgc.so.1" "$python" "$script" --ours "$scratch/libgc.so.1"
expect 2 "there is no $scratch/mark_random" "$python" "$script" --ours "$library" --programs "$scratch"
expect 77 "apt-get install valgrind" env PATH="$scratch" "$python" "$script" --ours "$library"

if command -v valgrind >/dev/null; then
  for strategy in none on-grey ring; do
    printf '%s\n' "| gcbench | ours | $strategy |"
  done >"$scratch/rows"
  "$python" "$script" --quick --only gcbench --ours "$library" --json "$scratch/figures.json" \
    >"$scratch/table"
  expect 0 "3" grep -cFf "$scratch/rows" "$scratch/table"
  # An object that is marked costs instructions, and hardly more than a few misses.
  expect 0 "plausible" "$python" - "$scratch/figures.json" <<'END'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    assert 10 < row["marking"]["instructions"] < 5000, row
    assert 0.05 < row["marking"]["d1"] < 20, row
    assert 0 < row["sweeping_and_allocation"]["d1"] < 20, row
    assert row["marked_objects"] > 8191, row
print("plausible")
END
else
  # The rest is checked before this says that nothing was counted.
  (expect_finish) || exit 1
  echo "valgrind is not installed: nothing was counted"
  exit 77
fi

expect_finish
