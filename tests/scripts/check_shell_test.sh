#!/usr/bin/env bash
# scripts/check-shell finds a flawed script by its name's ending or by its first line, and looks at
# nothing else.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

command -v shellcheck >/dev/null || {
  echo "shellcheck is not installed"
  exit 77
}
check=$repo/scripts/check-shell
flaw="rm \$1/*"

expect 0 "no scripts" "$check" "$scratch"
write good.sh <<<$'#!/bin/sh\necho "$1"'
write notes <<<"$flaw"
write build/made.sh <<<"$flaw"
expect 0 "1 scripts" "$check" "$scratch"

write bad.sh <<<$'#!/bin/sh\n'"$flaw"
expect 1 "bad.sh" "$check" "$scratch"
rm "$scratch/bad.sh"

write tool <<<$'#!/usr/bin/env bash\n'"$flaw"
expect 1 "tool" "$check" "$scratch"

expect_finish
