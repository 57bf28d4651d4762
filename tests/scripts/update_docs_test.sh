#!/usr/bin/env bash
# tools/jackdaw/update-docs writes the pages anew wherever it is called, and leaves nothing beside
# them.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

mkdir -p "$scratch/tree/tools/jackdaw" "$scratch/here/bin"
cp "$repo/tools/jackdaw/update-docs" "$scratch/tree/tools/jackdaw"
write tree/docs/guide/options.md <<<"old options"
write tree/docs/man/jackdaw.1 <<<$'.SH NAME\n.SH ENVIRONMENT\nold\n.SH EXAMPLES'
write here/bin/jackdaw <<<$'#!/bin/sh\necho "new options, $2"'
write here/bin/broken <<<$'#!/bin/sh\necho part; test "$2" = --markdown'
chmod +x "$scratch/here/bin"/*
update() {
  cd "$scratch/here" && ../tree/tools/jackdaw/update-docs "$@"
}

expect 127 "" update
expect 1 "" update bin/broken
expect 0 "old options" cat "$scratch/tree/docs/guide/options.md"
expect 0 "" update bin/jackdaw
expect 0 "new options, --markdown" cat "$scratch/tree/docs/guide/options.md"
expect 0 $'.SH NAME\nnew options, --man\n.SH EXAMPLES' cat "$scratch/tree/docs/man/jackdaw.1"
expect 0 "" env PATH="$scratch/here/bin:$PATH" "$scratch/tree/tools/jackdaw/update-docs" jackdaw
expect 1 "" grep "\.new" <<<"$(ls -R "$scratch/tree")"

expect_finish
