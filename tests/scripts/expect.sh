# shellcheck shell=bash
# A few words for testing a script by what it prints and returns. Sourced by the tests here.

# shellcheck disable=SC2034 # for the tests that source this
unset CDPATH # cd would look there first
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect_failures=0
expect_cases=0

# expect STATUS TEXT COMMAND...: the command ends with STATUS and prints TEXT (a fixed string).
expect() {
  local want_status=$1 want_text=$2 output status=0
  shift 2
  expect_cases=$((expect_cases + 1))
  output=$("$@" 2>&1) || status=$?
  if ((status != want_status)); then
    printf 'FAILED: %s\n  exit status %d, not %d; it printed:\n%s\n' "$*" "$status" "$want_status" "$output"
    expect_failures=$((expect_failures + 1))
  elif [[ $output != *"$want_text"* ]]; then
    printf 'FAILED: %s\n  "%s" is not in its output:\n%s\n' "$*" "$want_text" "$output"
    expect_failures=$((expect_failures + 1))
  fi
}

# expect_without TEXT COMMAND...: the command prints something, but not TEXT.
expect_without() {
  local text=$1 output
  shift
  expect_cases=$((expect_cases + 1))
  output=$("$@" 2>&1) || true
  if [[ -z $output || $output == *"$text"* ]]; then
    printf 'FAILED: %s\n  "%s" is in its output, or there is none:\n%s\n' "$*" "$text" "$output"
    expect_failures=$((expect_failures + 1))
  fi
}

# write FILE: the standard input becomes that file, in the scratch folder.
write() {
  mkdir -p "$scratch/$(dirname "$1")"
  cat >"$scratch/$1"
}

expect_finish() {
  echo "$((expect_cases - expect_failures)) of $expect_cases expectations met"
  ((expect_failures == 0))
}
