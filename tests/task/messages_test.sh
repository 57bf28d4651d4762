#!/usr/bin/env bash
# What tasks cannot be: the compiler says it in the header's words, and nothing else.
#
#   messages_test.sh g++|clang++
#
# Exit status: 0 fine, 1 not, 77 the compiler is not installed (a skipped test).
set -euo pipefail

# shellcheck source=tests/support/headers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/headers.sh"
standard=c++20
find_compiler "$1"

# Precompiled, since most of a compilation's time is its headers'.
printf '%s\n' '#include <jackdaw/task.hpp>' '#include <vector>' \
  'struct Fixed { const int v; };' 'struct Stays { Stays() {} Stays(Stays&&) = delete; };' \
  'struct Unique { Unique() = default; Unique(Unique&&) = default;' 'Unique& operator=(Unique&&) = default; };' \
  'int global; std::vector<int> some;' >"$work/before.hpp"
case $kind in
  g++) precompiled=$work/before.hpp.gch ;;
  clang++) precompiled=$work/before.hpp.pch ;;
esac
"$compiler" -std="$standard" -I "$include" -x c++-header -o "$precompiled" "$work/before.hpp"

refuse() { # message, statements
  compiled=$((compiled + 1))
  echo "void f() { $2 }" >"$work/wrong.cpp"
  if "$compiler" -std="$standard" -I "$include" -include "$work/before.hpp" -fsyntax-only \
    "$work/wrong.cpp" 2>"$work/errors"; then
    failures=$((failures + 1))
    echo "FAILED: this compiles: $2"
  elif [[ $(grep -c 'error:' "$work/errors") -ne 1 ]] || ! grep -q "error:.*$1" "$work/errors"; then
    failures=$((failures + 1))
    echo "FAILED: not '$1' alone about: $2"
    cat "$work/errors"
  fi
}

refuse "called without arguments" 'jd::par([](int) {}, [] {});'
refuse "called without arguments" 'jd::par([] {}, [](int) {});'
refuse "called without arguments" 'jd::run([](int) {});'
refuse "called without arguments" 'jd::blocking([](int) {});'
refuse "a value or a pointer" 'jd::par([]() -> int& { return global; }, [] {});'
refuse "a value or a pointer" 'jd::run([]() -> int& { return global; });'
refuse "result is moved" 'jd::par([] { return Stays(); }, [] {});'
refuse "result is moved" 'jd::run([] { return Stays(); });'
refuse "called with an index" \
  'jd::parallel_reduce(0, 9, 0, [](int*) { return 0; }, [](int a, int) { return a; });'
refuse "called with an element" \
  'jd::parallel_reduce(some, 0, [](int*) { return 0; }, [](int a, int) { return a; });'
refuse "what map returned" \
  'jd::parallel_reduce(0, 9, 0, [](int) { return &global; }, [](int a, int) { return a; });'
for range in '0, 9' some; do
  refuse "assigned to the result so far" \
    "jd::parallel_reduce($range, Fixed{0}, [](int i) { return Fixed{i}; },
      [](Fixed a, Fixed b) { return Fixed{a.v + b.v}; });"
done
refuse "called with an index" 'jd::parallel_for(0, 9, [](int*) {});'
refuse "called with an element" 'jd::parallel_for(some, [](int*) {});'
refuse "called without arguments" 'jd::scope s; s.fork([](int) {});'
refuse "a value or a pointer" 'jd::scope s; s.fork([]() -> int& { return global; });'
refuse "copyable, or moved from" 'jd::scope s; auto task = [stays = Unique()] {}; s.fork(task);'
refuse "called with two elements" 'jd::parallel_sort(some, [](int) { return true; });'
refuse "called with two elements" 'jd::parallel_sort(some, [](int, int) {});'
refuse "called with two elements" 'std::vector<Unique> v; jd::parallel_sort(v);'
refuse "called with two elements" 'jd::parallel_sort(some.begin(), some.end(), 5);'
refuse "comparison is copied" \
  'jd::parallel_sort(some, [unique = Unique()](int a, int b) { return a < b; });'
refuse "must be assignable" 'const std::vector<int> v; jd::parallel_sort(v);'
refuse "must be assignable" \
  'std::vector<Fixed> v; jd::parallel_sort(v, [](Fixed a, Fixed b) { return a.v < b.v; });'

finish
