#!/usr/bin/env bash
# ./dev's face: what it lists, what it says to nonsense, and that every command has a help that
# does nothing else.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

dev=$repo/dev

expect 0 "usage: ./dev COMMAND" "$dev"
expect 0 "usage: ./dev COMMAND" "$dev" --help
expect 2 "no command 'dance'" "$dev" dance
commands=$("$dev" | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for command in build test stress fuzz demo clients bench format lint install-deps clean; do
  expect 0 "$command" echo "$commands"
  expect 0 "usage: ./dev $command" "$dev" "$command" --help
done
expect 2 "no preset 'fast'" "$dev" test --preset fast
expect 2 "--compiler is gcc or clang, not 'icc'" "$dev" build --compiler icc
expect 2 "unknown option --wat" "$dev" test --wat
expect 2 "dev: --preset needs a name" "$dev" test --preset
expect 2 "dev: --compiler needs gcc or clang" "$dev" build --compiler
expect 2 "no program 'wine'" "$dev" fuzz wine
expect 2 "a number of seconds, not 'soon'" "$dev" fuzz --seconds=soon
expect 2 "format takes no arguments" "$dev" format --wat
expect 2 "one filter" "$dev" test a b
expect 2 "no package group 'wine'" "$dev" install-deps wine

expect_finish
