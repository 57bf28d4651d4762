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

# Regression: with an exported CDPATH it went to another checkout, whose build/ it removed.
for checkout in one/checkout other/checkout; do
  mkdir -p "$scratch/$checkout/build"
  cp -r "$repo/dev" "$repo/scripts" "$scratch/$checkout"
done
# in_one CDPATH COMMAND...: with the scratch folder's one/ as the current folder.
in_one() {
  (cd "$scratch/one" && CDPATH=$1 "${@:2}")
}
expect 0 "" in_one "$scratch/other" checkout/dev clean
expect 0 "build" ls "$scratch/other/checkout"
expect 1 "" test -e "$scratch/one/checkout/build"

# Regression: called through a link it took the link's folder for the checkout.
mkdir "$scratch/bin" "$scratch/one/checkout/build"
ln -s ../one/checkout/dev "$scratch/bin/jackdaw-dev"
expect 0 "usage: ./dev build" "$scratch/bin/jackdaw-dev" build --help
expect 0 "" "$scratch/bin/jackdaw-dev" clean
expect 1 "" test -e "$scratch/one/checkout/build"

# So with every script that goes to where it lies, or to a folder it is told.
# shellcheck disable=SC2016 # a regular expression
goes='(^|[ (])cd "\$(\{1:-|\(dirname|root)'
while IFS= read -r script; do
  expect 0 "unset CDPATH" grep "^unset CDPATH" "$script"
done < <(grep -rlE "$goes" "$repo/dev" "$repo/scripts" "$repo/.ci" "$repo/tools/jackdaw/update-docs" \
  "$repo/tests" --include='*.sh' --include=dev --include='check-*' --include=lint --include=fetch-peers \
  --include=run --include=update-docs)

expect_finish
