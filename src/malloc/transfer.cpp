#include "malloc/transfer.hpp"

#include "base/bits.hpp"
#include "os/memory.hpp"
#include "os/written_pages.hpp"

namespace jd::serve {
namespace {

// Returned at a time: a huge page, so that none has to be split.
constexpr std::size_t kPiece = os::kHugePage;
// Below it, clearing is faster than having pages returned, which come back when they are written.
constexpr std::size_t kLeastReturned = 64 * base::kKiB;  // a guess

char* page_begin(const char* p) {
  return base::as_pointer(base::align_down(base::as_word(p), os::page_size()));
}

class Transfer final : public os::PageVisitor {
 public:
  // Both are the beginnings of pages.
  Transfer(char* to, char* from) : to_(to), from_(from), at_(from) {}

  // [low, high) was written.
  void pages(char* low, char* high) override {
    leave_unwritten(low);
    while (at_ < high) {
      char* const end = base::min_of(
          high, base::as_pointer(base::align_down(base::as_word(at_), kPiece) + kPiece));
      base::copy_bytes(there(at_), at_, static_cast<std::size_t>(end - at_));
      const char* const whole = page_begin(end);
      if (whole > at_) os::discard(at_, static_cast<std::size_t>(whole - at_));
      at_ = end;
    }
  }

  // Nothing was up to there. The new object's pages may hold old data.
  void leave_unwritten(char* end) {
    if (at_ >= end) return;
    char* begin = there(at_);
    char* const new_end = there(end);
    char* const whole = page_begin(new_end);
    if (whole > begin) {
      const auto size = static_cast<std::size_t>(whole - begin);
      if (size >= kLeastReturned && os::discard(begin, size)) begin = whole;
    }
    base::clear_bytes(begin, static_cast<std::size_t>(new_end - begin));
    at_ = end;
  }

 private:
  // The new place of a byte.
  char* there(const char* p) const { return to_ + (p - from_); }

  char* to_;
  char* from_;
  char* at_;  // what lies below is done
};

}  // namespace

void transfer(void* to, void* from, std::size_t bytes) {
  auto* const begin = static_cast<char*>(from);
  alignas(sizeof(base::Word)) char answers[base::kKiB];  // the stack may be small
  const os::WrittenPages written(answers, sizeof answers);
  Transfer transfer(static_cast<char*>(to), begin);
  written.visit(begin, begin + bytes, &transfer);
  transfer.leave_unwritten(begin + bytes);
}

}  // namespace jd::serve
