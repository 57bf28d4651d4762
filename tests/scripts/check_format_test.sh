#!/usr/bin/env bash
# scripts/check-format names the unformatted file, --fix repairs it, and other files stay alone.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

command -v clang-format-16 >/dev/null || {
  echo "clang-format-16 is not installed"
  exit 77
}
check=$repo/scripts/check-format
cp "$repo/.clang-format" "$scratch/"

write src/good.cpp <<<"int f(int x) { return x; }"
expect 0 "1 files" "$check" "$scratch"

write "src/bad name.hpp" <<<"int   f( int x ) {return x;}"
write build/debug/generated.cpp <<<"int   f( int x ) {return x;}"
expect 1 "src/bad name.hpp" "$check" "$scratch"

expect 0 "" "$check" --fix "$scratch"
expect 0 "2 files" "$check" "$scratch"
expect 0 "int f(int x) { return x; }" cat "$scratch/src/bad name.hpp"
expect 0 "int   f( int x )" cat "$scratch/build/debug/generated.cpp"

# Where clang-format fails, it says why.
echo "NoSuchKey: 1" >>"$scratch/.clang-format"
expect 1 "NoSuchKey" "$check" "$scratch"
expect 1 "NoSuchKey" "$check" --fix "$scratch"

expect_finish
