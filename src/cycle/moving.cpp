#include "cycle/moving.hpp"

#include "copy/evacuate.hpp"
#include "copy/holders.hpp"
#include "copy/roles.hpp"
#include "cycle/collect.hpp"
#include "cycle/finalization.hpp"
#include "cycle/settings.hpp"
#include "os/cpu.hpp"

namespace jd::cycle {
namespace {

using base::Word;

// Under the heap's lock.
copy::Wish wish = copy::Wish::Automatic;

class PinRoots final : public world::RootVisitor {
 public:
  void range(const void* low, const void* high) override { pin(low, high, false); }
  // As in marking.
  void stack(const void* low, const void* high) override {
    pin(low, high, GC_all_interior_pointers != 0);
  }

 private:
  [[gnu::no_sanitize_address]] static void pin(const void* low, const void* high, bool past_end) {
    const Word end = base::align_down(base::as_word(high), sizeof(Word));
    for (Word at = base::align_up(base::as_word(low), sizeof(Word)); at < end; at += sizeof(Word)) {
      const Word word = *reinterpret_cast<const Word*>(at);
      if (!heap::in_heap(word)) continue;
      // What the program declared as a precise root may lie in static data.
      if (copy::is_source(word) && copy::is_root(at)) continue;
      copy::pin_meaning_of(word, past_end);
    }
  }
};

std::uint64_t lap(std::uint64_t* since) {
  const std::uint64_t now = os::now_ns();
  const std::uint64_t took = now - *since;
  *since = now;
  return took;
}

}  // namespace

void wish_to_compact() { wish = copy::Wish::Compact; }

bool move_objects(char* stack_top) {
  if (!copy::in_use) return false;
  std::uint64_t at = os::now_ns();
  const bool moving = copy::choose_sources(wish);
  wish = copy::Wish::Automatic;
  if (!moving) return false;
  copy::counts.pinned_last = 0;
  PinRoots pins;
  visit_ambiguous_roots(&pins, stack_top);
  visit_immovable([](Word address) { copy::pin_meaning_of(address, false); });
  copy::pin_from_objects();
  copy::counts.pin_ns += lap(&at);
  copy::move_objects();
  copy::counts.move_ns += lap(&at);
  copy::fix_words();
  rekey_finalizers(copy::moved);
  copy::counts.fix_ns += lap(&at);
  return true;
}

}  // namespace jd::cycle
