#!/usr/bin/env bash
# scripts/check-layers finds each kind of violation, at its line, and nothing in a tree that is in
# order.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

check=$repo/scripts/check-layers

# A small tree in order. Each case below breaks one thing in it and starts afresh.
fresh_tree() {
  rm -rf "${scratch:?}"/*
  local room
  for room in base os heap libgc; do
    write "docs/design/$room.md" <<<"# $room"
  done
  write src/base/bits.hpp <<'END'
#pragma once
#include <cstdint>
END
  write src/os/memory.cpp <<'END'
#include <sys/mman.h>
#include "base/bits.hpp"
void* map(std::size_t n) { return mmap(nullptr, n, 0, 0, -1, 0); }
END
  write src/heap/heap.cpp <<'END'
#include "os/memory.hpp"
#include "base/bits.hpp"
// A comment may say mmap() and #include "cycle/cycle.hpp".
/* So may one
   of two lines: mmap( */
struct File { void write(int); };
void f(File& file, const char*& text) {
  file.write(1);
  text = "mmap(";
  jd::os::mmap(1);
}
END
  write src/libgc/gc.cpp <<'END'
#include <dlfcn.h>
#include "gc/gc.h"
#include "heap/heap.hpp"
int GC_pthread_sigmask(int how) { return pthread_sigmask(how, nullptr, nullptr); }
END
}

# breaks FILE LINE-OF-CODE TEXT: with the line added at the file's end, TEXT is complained of.
breaks() {
  fresh_tree
  mkdir -p "$scratch/$(dirname "$1")"
  printf '%s\n' "$2" >>"$scratch/$1"
  expect 1 "$3" "$check" "$scratch"
}

fresh_tree
expect 0 "4 files keep the order" "$check" "$scratch"

breaks src/heap/heap.cpp '#include "alloc/hole.hpp"' \
  'src/heap/heap.cpp:12: src/heap must not include "alloc/hole.hpp": src/alloc is above it'
breaks src/heap/heap.cpp '  #  include "libgc/gc.hpp"' 'src/libgc is above it'
breaks src/base/bits.hpp '#include "os/memory.hpp"' 'src/base/bits.hpp:3: src/base must not include'
breaks src/heap/heap.cpp '#include "../base/bits.hpp"' 'by its room'
breaks src/heap/heap.cpp '#include "heap.hpp"' 'by its room'
breaks src/heap/heap.cpp '#include "cellar/wine.hpp"' 'in no room'
breaks src/heap/heap.cpp '#include "gc/gc.h"' 'src/heap must not include the public header gc/gc.h'
breaks src/heap/heap.cpp '#include <gc/gc.h>' 'src/heap must not include the public header <gc/gc.h>'
breaks src/heap/heap.cpp '#include <gc.h>' 'src/heap must not include the public header <gc.h>'
breaks src/heap/heap.cpp '#include <sys/mman.h>' '<sys/mman.h> is for src/os'
breaks src/heap/heap.cpp '#include <unistd.h>' '<unistd.h> is for src/os'
breaks src/heap/heap.cpp 'int x = madvise(p, n, 4);' 'the system call madvise() belongs in src/os'
breaks src/heap/heap.cpp 'int x = ::mmap(p, n, 4);' 'the system call mmap() belongs in src/os'
breaks src/heap/heap.cpp 'int x = ::write(1, p, n);' 'the system call write() belongs in src/os'
breaks src/heap/heap.cpp '/* a */ syscall(39);' 'the system call syscall() belongs in src/os'
breaks src/libgc/gc.cpp 'void* p = mmap(nullptr, 1, 0, 0, 0, 0);' 'src/libgc/gc.cpp:5: the system call mmap()'
breaks src/cellar/wine.cpp 'int x;' 'src/cellar: not in the list of rooms'
breaks src/mark/ring.cpp 'int x;' 'its design note docs/design/mark.md is missing'

fresh_tree
write docs/design/cycle.md <<<"# cycle"
write src/cycle/settings.hpp <<<'#include "gc/gc.h"'
expect 0 "5 files keep the order" "$check" "$scratch"

# The room that stands before libc's functions defines some of the system's, and calls no other.
fresh_tree
write docs/design/malloc.md <<<"# malloc"
write src/malloc/interpose.cpp <<'END'
#include <poll.h>
#include "libgc/gc.hpp"
int sigprocmask(int how, const sigset_t* set, sigset_t* old) { return 0; }
END
expect 0 "5 files keep the order" "$check" "$scratch"
echo 'int x = sysconf(1);' >>"$scratch/src/malloc/interpose.cpp"
expect 1 'src/malloc/interpose.cpp:4: the system call sysconf() belongs in src/os' "$check" "$scratch"
breaks src/libgc/gc.cpp '#include "malloc/serve.hpp"' 'src/malloc is above it'

# The command's folders have an order, too.
breaks tools/jackdaw/figures/table.cpp '#include "page/plot.hpp"' \
  'tools/jackdaw/figures/table.cpp:1: tools/jackdaw/figures must not include "page/plot.hpp": page is above it'
breaks tools/jackdaw/cellar/wine.cpp 'int x;' 'tools/jackdaw/cellar is not in the list of folders'
fresh_tree
write tools/jackdaw/commands.hpp <<<'#include "reports/catalogue.hpp"'
write tools/jackdaw/page/plot.hpp <<'END'
#include "figures/table.hpp"
#include "page/report.hpp"
#include "commands.hpp"
END
expect 0 "4 files keep the order" "$check" "$scratch"

fresh_tree
rm "$scratch/docs/design/heap.md"
expect 1 'docs/design/heap.md is missing' "$check" "$scratch"

rm -rf "${scratch:?}"/*
expect 1 'there is no src/' "$check" "$scratch"

expect_finish
