#!/usr/bin/env bash
# Compiles the headers of the typed heap, each alone and twice, with code that uses their macros and
# inline functions, without a warning.
#
#   headers_test.sh gcc|g++|clang|clang++ STANDARD
#
# Exit status: 0 fine, 1 not, 77 the compiler is not installed (a skipped test).
set -euo pipefail

# shellcheck source=tests/support/headers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/headers.sh"
standard=$2
find_compiler "$1"
headers=(jackdaw/layout.h jackdaw/heap.h)
# The C++ face is C++20.
[[ $standard != c++20 ]] || headers+=(jackdaw/heap.hpp)

for header in "${headers[@]}"; do
  {
    printf '#include <%s>\n#include <%s>\n' "$header" "$header"
    printf 'struct pair { void *first; long number; };\n'
    printf 'uint64_t bits(void);\n'
    printf 'uint64_t bits(void) { return JD_POINTER(struct pair, first); }\n'
    if [[ $header != jackdaw/layout.h ]]; then
      printf 'void* make(const jd_layout* layout);\n'
      printf 'void* make(const jd_layout* layout) { return jd_new(layout); }\n'
    fi
    if [[ $header == *.hpp ]]; then
      printf 'struct chain { jd::ref<chain> next; using jd_members = jd::pointers<&chain::next>; };\n'
      printf 'chain* make_chain(chain* next) { return jd::make<chain>(next); }\n'
      # Fewer arguments than there are members.
      printf 'struct entry { jd::ref<entry> next; long number; '
      printf 'using jd_members = jd::pointers<&entry::next>; };\n'
      printf 'entry* make_entry(entry* next) { return jd::make<entry>(next); }\n'
    fi
  } >"$work/alone.$extension"
  for options in "" "-O2 -fno-strict-aliasing" "-DGC_THREADS" "-fPIC"; do
    # The C++ face is for programs without exceptions and type information, too.
    extra=()
    [[ $extension == c || $options != -fPIC ]] || extra=(-fno-exceptions -fno-rtti)
    # Unquoted: a list of words.
    # shellcheck disable=SC2086
    try "$work/alone.$extension" -Wshadow $options "${extra[@]}"
  done
done

# The first allocation of a thread finds a hole of null pointers, which are nothing to add to. (Only
# clang's sanitizer says so. Stopping at once, it needs no library.)
if [[ $kind == clang* ]]; then
  cat >"$work/empty.$extension" <<'END'
#include <jackdaw/heap.h>
static jd_hole empty;
static jd_hole* const table[] = {&empty};
__thread jd_hole* const* jd_holes = table;
static int slow;
void* jd_new_slowly(const jd_layout* layout) { (void)layout; ++slow; return NULL; }
void* jd_new_array_slowly(const jd_layout* layout, size_t elements) {
  (void)layout;
  (void)elements;
  ++slow;
  return NULL;
}
int main(void) {
  jd_layout layout = {};
  layout.bytes = layout.fixed = 16;
  layout.element = 8;
  return jd_new(&layout) == NULL && jd_new_array(&layout, 3) == NULL && slow == 2 ? 0 : 1;
}
END
  compiled=$((compiled + 1))
  if ! "$compiler" -std="$standard" -O1 -fsanitize=undefined -fsanitize-trap=undefined \
    -I "$include" -o "$work/empty" "$work/empty.$extension" || ! "$work/empty"; then
    failures=$((failures + 1))
    echo "FAILED: an allocation from an empty hole"
  fi
fi

# What must not compile, with the words that say why.
refuse() { # message, source
  printf '#include <jackdaw/heap.hpp>\n#include <string>\n%s\n' "$2" >"$work/wrong.cpp"
  if "$compiler" -std="$standard" -I "$include" -fsyntax-only "$work/wrong.cpp" 2>"$work/errors"; then
    failures=$((failures + 1))
    echo "FAILED: this compiles: $2"
  elif ! grep -q "$1" "$work/errors"; then
    failures=$((failures + 1))
    echo "FAILED: no word of '$1' about: $2"
    cat "$work/errors"
  fi
}
if [[ $standard == c++20 ]]; then
  refuse "trivially destructible" 'struct S { std::string s; using jd_members = jd::pointers<>; };
    auto* f() { return jd::make<S>(); }'
  refuse "trivially destructible" 'struct S { jd::root<S> r; using jd_members = jd::pointers<>; };
    auto* f() { return jd::make<S>(); }'
  refuse "which members point to objects" 'struct S { S* s; }; auto* f() { return jd::make<S>(); }'
  refuse "neither a pointer nor" 'struct S { int i; using jd_members = jd::pointers<&S::i>; };
    auto* f() { return jd::make<S>(); }'
  refuse "must not be packed" 'struct [[gnu::packed]] S { int i; S* s; using jd_members = jd::pointers<&S::s>; };
    auto* f() { return jd::make<S>(); }'
  refuse "aligns objects" 'struct alignas(64) S { using jd_members = jd::pointers<>; };
    auto* f() { return jd::make<S>(); }'
  refuse "what an element is" 'struct S { using jd_members = jd::pointers<>; };
    auto* f() { return jd::make_array<S>(3); }'
  refuse "jd::described" 'struct S { void* first; }; template <> struct jd::members<S>
    : jd::pointers<> { static constexpr jd_source source = JD_SELF; };
    auto* f() { return jd::make<S>(); }'
fi

# Regression: an older standard was met with pages of errors, none of which named it.
if [[ $extension == cpp && $standard != c++20 ]]; then
  for header in heap task; do
    compiled=$((compiled + 1))
    printf '#include <jackdaw/%s.hpp>\n' "$header" >"$work/old.cpp"
    said=$("$compiler" -std="$standard" -I "$include" -fsyntax-only "$work/old.cpp" 2>&1 | grep 'error: ') || true
    if [[ $said != *"$header.hpp> needs C++20"* || $said == *$'\n'* ]]; then
      failures=$((failures + 1))
      echo "FAILED: instead of one error that asks for C++20, $header.hpp in $standard has: $said"
    fi
  done
fi

finish
