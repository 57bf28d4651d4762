#!/usr/bin/env bash
# scripts/check-requirements finds a tag that is cited nowhere, defined nowhere, or defined twice.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

check=$repo/scripts/check-requirements

fresh_tree() {
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch/include" "$scratch/tests"
  write docs/design/heap.md <<<"- **heap.req.lines** Whole lines."
  write src/heap/heap.hpp <<<"// heap.req.lines: here."
  write tests/heap/heap_test.cpp <<<"// heap.req.lines"
}

fresh_tree
expect 0 "1 requirements, all cited" "$check" "$scratch"

write docs/design/mark.md <<<"- **mark.req.all** All of them."
expect 1 "mark.req.all is defined in docs/design and cited nowhere" "$check" "$scratch"
write tests/mark.cpp <<<"// Checks mark.req.all."
expect 0 "2 requirements, all cited" "$check" "$scratch"

# Nor is it enough that it is cited where it is met, unless the script itself says why.
fresh_tree
rm "$scratch/tests/heap/heap_test.cpp"
expect 1 "heap.req.lines is cited in no test" "$check" "$scratch"
write tests/scripts/of_scripts.sh <<<"# heap.req.lines"
expect 1 "heap.req.lines is cited in no test" "$check" "$scratch"
fresh_tree
write docs/design/malloc.md <<<"- **malloc.req.fast** Quick."
write src/malloc/entries.cpp <<<"// malloc.req.fast"
expect 0 "malloc.req.fast, in no test: " "$check" "$scratch"
write tests/malloc/malloc_test.cpp <<<"// malloc.req.fast"
expect 1 "malloc.req.fast is cited in a test, and listed" "$check" "$scratch"

fresh_tree
write src/heap/other.hpp <<<"// heap.req.line"
expect 1 "heap.req.line is cited and defined nowhere" "$check" "$scratch"

fresh_tree
write docs/design/base.md <<<"- **heap.req.lines** Again."
expect 1 "heap.req.lines is defined twice" "$check" "$scratch"

expect 1 "there is no docs/design/" "$check" "$scratch/src"

expect_finish
