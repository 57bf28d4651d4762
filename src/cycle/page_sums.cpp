#include "cycle/page_sums.hpp"

#include "heap/side_table.hpp"
#include "heap/space.hpp"
#include "os/log.hpp"

namespace jd::cycle {
namespace {

using base::Word;
using heap::BlockNumber;
using heap::kBlockSize;

// The least that systems have.
constexpr std::size_t kPage = 4096;
constexpr unsigned kPages = kBlockSize / kPage;

struct BlockSums {
  std::uint64_t sums[kPages];
  bool summed[kPages];
  bool written[kPages];
};
heap::SideTable<BlockSums> table;

// In the manner of Fowler, Noll and Vo, a word at a time.
[[gnu::no_sanitize_address]] std::uint64_t sum_of(Word page) {
  std::uint64_t sum = 0xCBF29CE484222325;
  for (Word at = page; at < page + kPage; at += sizeof(Word)) {
    sum = (sum ^ *reinterpret_cast<const Word*>(at)) * 0x100000001B3;
  }
  return sum;
}

unsigned page_of(Word address) { return (address & (kBlockSize - 1)) / kPage; }

class NoteWritten final : public os::PageVisitor {
 public:
  void pages(char* low, char* high) override {
    for (Word at = base::as_word(low); at < base::as_word(high); at += kPage) {
      const BlockNumber block = heap::block_number(at);
      if (block < table.covered()) table[block].written[page_of(at)] = true;
    }
  }
};

bool note_written(const os::WatchedPages& pages, char* low, char* high) {
  NoteWritten note;
  return pages.visit_written(low, high, &note);
}

}  // namespace

void sum_watched(char* low, char* high) {
  if (!table.cover()) return;
  for (Word at = base::as_word(low); at < base::as_word(high); at += kPage) {
    BlockSums& block = table[heap::block_number(at)];
    block.sums[page_of(at)] = sum_of(at);
    block.summed[page_of(at)] = true;
  }
}

void forget_sums() { table.discard(); }

bool verify_unwritten(const os::WatchedPages& pages) {
  // Those that were not summed may still be protected from earlier on.
  if (!table.cover()) return true;
  const Word end = heap::block_address(table.covered());
  for (BlockNumber b = 0; b < table.covered(); ++b) {
    for (bool& written : table[b].written) written = false;
  }
  if (!note_written(pages, base::as_pointer(heap::space.base), base::as_pointer(end))) return false;
  for (Word at = heap::space.base; at < end; at += kPage) {
    const BlockSums& block = table[heap::block_number(at)];
    const unsigned page = page_of(at);
    if (block.written[page] || !block.summed[page] || block.sums[page] == sum_of(at)) continue;
    // The stack that the collector runs on may be an object, and a thread that no collection stops
    // may have written just now.
    if (!note_written(pages, base::as_pointer(at), base::as_pointer(at + kPage))) return false;
    if (!block.written[page]) {
      os::fatal("heap verifier: the page at ", static_cast<const void*>(base::as_pointer(at)),
                " passes for unwritten and has changed (do devices, or io_uring, write there?)");
    }
  }
  return true;
}

bool is_unwritten(Word address) {
  const BlockNumber block = heap::block_number(address);
  return block >= table.covered() || !table[block].written[page_of(address)];
}

}  // namespace jd::cycle
