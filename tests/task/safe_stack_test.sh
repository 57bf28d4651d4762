#!/usr/bin/env bash
# Runs tasks of code that clang compiled for its SafeStack, in the modes that the environment asks
# for: there is only the deque.
#
#   safe_stack_test.sh LIBRARY-FOLDER
#
# Exit status: 0 fine, 1 not, 77 clang or its run-time is not installed (a skipped test).
set -euo pipefail

libraries=$1
unset CDPATH # cd would look there first
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/headers.sh
source "$here/../support/headers.sh"

find_compiler clang++
echo 'int main() { return 0; }' >"$work/nothing.cpp"
if ! "$compiler" -fsanitize=safe-stack -o "$work/nothing" "$work/nothing.cpp" 2>/dev/null; then
  echo "$compiler has no run-time for -fsanitize=safe-stack (apt-get install libclang-rt-16-dev)"
  exit 77
fi

for extension in cpp c; do
  language=(-x c++ -std=c++20)
  [[ $extension == cpp ]] || language=(-x c -std=c11)
  "$compiler" "${language[@]}" -O1 -Wall -Wextra -Werror -fsanitize=safe-stack -I "$include" \
    -o "$work/forks" "$here/safe_stack.$extension" -L "$libraries" -ljackdaw
  for mode in "" JACKDAW_TASK_MODE={deque,stop,barrier}; do
    if ! env LD_LIBRARY_PATH="$libraries" ${mode:+"$mode"} timeout -k 5 60 "$work/forks"; then
      echo "FAILED: safe_stack.$extension $mode"
      failures=$((failures + 1))
    fi
  done
done
((failures == 0))
