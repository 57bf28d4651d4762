// What is read of memory that may be gone.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "os/memory.hpp"
#include "os/modules.hpp"
#include "os/safe_reading.hpp"
#include "os/thread_locals.hpp"

namespace jd::os {
namespace {

// Two pages, of which the second can't be read.
class HalfReadable {
 public:
  HalfReadable() {
    memory_ = static_cast<char*>(
        mmap(nullptr, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(end(), page_size(), PROT_NONE);
  }
  ~HalfReadable() { munmap(memory_, 2 * page_size()); }
  HalfReadable(const HalfReadable&) = delete;
  HalfReadable& operator=(const HalfReadable&) = delete;

  [[nodiscard]] char* begin() const { return memory_; }
  [[nodiscard]] char* end() const { return memory_ + page_size(); }

 private:
  char* memory_;
};

TEST(SafeReading, PiecesAreReadIfAllCanBe) {
  const HalfReadable memory;
  std::memcpy(memory.end() - 4, "abcd", 4);
  const Piece good[] = {{memory.end() - 1, 1}, {memory.end() - 4, 2}, {memory.end() - 2, 1}};
  char copy[8] = {};
  if (!read_pieces_safely(copy, good, 1)) GTEST_SKIP() << "the system forbids process_vm_readv";
  EXPECT_TRUE(read_pieces_safely(copy, good, 0));
  ASSERT_TRUE(read_pieces_safely(copy, good, 3));
  EXPECT_STREQ(copy, "dabc");
  for (const std::size_t bad : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    Piece pieces[] = {good[0], good[1], good[2]};
    pieces[bad].from = memory.end() - (pieces[bad].size - 1);
    EXPECT_FALSE(read_pieces_safely(copy, pieces, 3)) << bad;
  }
  Piece many[kMostPieces];
  for (Piece& piece : many) piece = good[0];
  char copies[kMostPieces];
  EXPECT_TRUE(read_pieces_safely(copies, many, kMostPieces));
}

TEST(SafeReading, PagesAreReadTogether) {
  const HalfReadable memory;
  char byte;
  const Piece one{memory.begin(), 1};
  if (!read_pieces_safely(&byte, &one, 1)) GTEST_SKIP() << "the system forbids process_vm_readv";
  PagesToRead none;
  EXPECT_TRUE(none.are_readable());
  for (const bool good : {true, false}) {
    // More than one question is for.
    for (const std::size_t count : {std::size_t{1}, kMostPieces, 3 * kMostPieces}) {
      PagesToRead pages;
      if (!good) pages.add(memory.end() - 1, memory.end() + 1);
      for (std::size_t i = 0; i < count; ++i) pages.add(memory.begin(), memory.end());
      EXPECT_EQ(pages.are_readable(), good) << count;
    }
  }
}

// As many questions as there are readings, and one for the number.
TEST(SafeReading, TheThreadsNumberIsAskedForOnce) {
  const HalfReadable memory;
  const ManyReads reads;
  const auto in_other_thread = [&] {
    const ManyReads inner;
    char byte;
    return read_safely(&byte, memory.begin(), 1) && !read_safely(&byte, memory.end(), 1);
  };
  char byte;
  EXPECT_TRUE(read_safely(&byte, memory.begin(), 1));
  EXPECT_FALSE(read_safely(&byte, memory.end(), 1));
  bool right = false;
  std::thread other([&] { right = in_other_thread(); });
  other.join();
  EXPECT_TRUE(right);
  EXPECT_TRUE(read_safely(&byte, memory.begin(), 1));
}

thread_local int own_variable = 1;

class OwnModules final : public ModuleVisitor {
 public:
  void data(const DataSegment&) override {}
  void thread_locals(const ThreadLocalModule& module) override {
    const void* block = thread_local_block(own_thread_control_block(), module.module);
    const ThreadLocalBlocks blocks(own_thread_control_block(), module.module);
    EXPECT_EQ(blocks.of_module(module.module), block) << module.module;
    const auto* begin = static_cast<const char*>(block);
    const auto* own = reinterpret_cast<const char*>(&own_variable);
    seen |= own >= begin && own < begin + module.size;
  }
  bool seen = false;
};

TEST(SafeReading, ThreadLocalBlocksAreThoseOfTheVector) {
  OwnModules modules;
  std::uint64_t fingerprint = 0;
  visit_modules(&modules, &fingerprint);
  EXPECT_TRUE(modules.seen) << "the block of this program's own";
}

// As glibc has it: the control block's second word leads to the vector, whose entry -1 counts.
struct MadeUp {
  explicit MadeUp(ThreadLocalBlocks::Entry* vector) : control_block{nullptr, nullptr} {
    control_block[0] = control_block[1] = vector;
  }
  void* control_block[2];
};

TEST(SafeReading, AVectorMayEndWhereWhatIsMappedDoes) {
  const HalfReadable memory;
  auto* const end = reinterpret_cast<ThreadLocalBlocks::Entry*>(memory.end());
  ThreadLocalBlocks::Entry* const vector = end - 3;  // entries 0, 1, 2
  std::memset(memory.begin(), 0, page_size());
  vector[-1].block = 2;
  vector[1].block = 0x1000;
  vector[2].block = ~std::uintptr_t{0};
  const MadeUp thread(vector);
  for (const std::size_t last : {std::size_t{1}, std::size_t{2}, std::size_t{20}}) {
    const ThreadLocalBlocks blocks(thread.control_block, last);
    EXPECT_EQ(blocks.of_module(0), nullptr);
    EXPECT_EQ(blocks.of_module(1), reinterpret_cast<void*>(0x1000));
    EXPECT_EQ(blocks.of_module(2), nullptr) << "not allocated";
    EXPECT_EQ(blocks.of_module(3), nullptr) << "none";
  }
}

TEST(SafeReading, AVectorMayBeLong) {
  static ThreadLocalBlocks::Entry entries[102];
  ThreadLocalBlocks::Entry* const vector = entries + 1;
  vector[-1].block = 100;
  for (std::size_t i = 1; i <= 100; ++i) vector[i].block = i * 16;
  const MadeUp thread(vector);
  const ThreadLocalBlocks blocks(thread.control_block, 100);
  for (std::size_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(blocks.of_module(i), reinterpret_cast<void*>(i * 16));
  }
  EXPECT_EQ(blocks.of_module(101), nullptr);
}

TEST(SafeReading, AVectorThatIsGoneHasNoBlocks) {
  const HalfReadable memory;
  const MadeUp thread(reinterpret_cast<ThreadLocalBlocks::Entry*>(memory.end() + 64));
  EXPECT_EQ(ThreadLocalBlocks(thread.control_block, 3).of_module(1), nullptr);
  EXPECT_EQ(ThreadLocalBlocks(memory.end(), 3).of_module(1), nullptr);
  const MadeUp none(nullptr);
  EXPECT_EQ(ThreadLocalBlocks(none.control_block, 3).of_module(1), nullptr);
}

}  // namespace
}  // namespace jd::os
