// The marker against a model: a graph of objects whose reachable set is computed independently
// (mark.req.complete), with each strategy of the one loop (mark.req.one-loop).
#include "mark/marker.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/sweep.hpp"
#include "mark/team.hpp"
#include "os/memory.hpp"

namespace {

using namespace jd::heap;
using jd::base::MarkStrategy;
using jd::mark::Marker;
using jd::mark::team;

// Kinds of each sort of descriptor. Those that are found through the object leave its first words
// to themselves.
struct Described {
  KindNumber bitmap = number(bits(0) | bits(3) | kTagBitmap, false);
  KindNumber length = number(3 * sizeof(Word), false);
  KindNumber whole = number(kTagLength, true);
  // In the object's second word.
  KindNumber in_object = number(sizeof(Word) | kTagPerObject, false);
  // Behind the first word.
  KindNumber behind_first = number(kTagPerObject - kIndirectBias, false);
  KindNumber procedure =
      number((static_cast<Word>(add_mark_procedure(push_third)) << 2) | kTagProcedure, false);

  static constexpr Word bits(unsigned word) { return Word{1} << (63 - word); }
  static KindNumber number(Word descriptor, bool add_size) {
    const unsigned kind = add_kind(descriptor, add_size, true);
    EXPECT_LT(kind, kMaxKinds);
    kinds[kind].scan = Scan::Descriptor;
    return static_cast<KindNumber>(kind);
  }
  static void* push_third(Word* object, void* marker, void* /*limit*/, Word /*environment*/) {
    static_cast<Marker*>(marker)->push_range(object + 2, object + 3);
    return marker;
  }

  // What the objects of the last two sorts hold: the fourth word of one, the third of the other.
  static constexpr Word kInObject = (Word{1} << (63 - 3)) | kTagBitmap;
  static constexpr Word kBehindFirst = (Word{1} << (63 - 2)) | kTagBitmap;
};

const Described& described() {
  static const Described kinds;
  return kinds;
}

// Is this word of the object one that the marker may follow?
bool is_scanned(const Place& place, std::size_t word) {
  const KindNumber kind = place.block->kind;
  const Described& d = described();
  if (place.block->scan == Scan::None) return false;
  if (kind == d.bitmap) return word == 0 || word == 3;
  if (kind == d.length) return word < 3;
  if (kind == d.in_object) return word == 3;
  if (kind == d.behind_first || kind == d.procedure) return word == 2;
  return true;
}

// Objects of mixed sizes and kinds in blocks made by hand; no allocator, no collector.
class Graph {
 public:
  explicit Graph(std::uint64_t seed) : random_(seed) {
    EXPECT_TRUE(reserve_space(512u << 20));
    EXPECT_TRUE(grow(2000));
  }

  void make_objects(std::size_t count) {
    while (objects_.size() < count) {
      if (random_() % 2000 == 0) {
        BlockNumber dirty = 0;
        Block* block = make_large(kNormal, (1 + random_() % 3) * kBlockSize - 16, 1, &dirty);
        ASSERT_NE(block, nullptr);
        objects_.push_back(block_address(number_of(block)));
        continue;
      }
      const unsigned size_class = static_cast<unsigned>(random_() % 20);
      const KindNumber kind = pick_kind(slot_size_of(size_class));
      const BlockNumber number = make_small_block(kind, size_class);
      ASSERT_NE(number, kNoBlock);
      Block& block = space.blocks[number];
      for (unsigned slot = 0; slot < block.slots; ++slot) {
        if (random_() % 4 == 0) continue;  // stays a free slot
        block.allocated[slot / 64] |= std::uint64_t{1} << (slot % 64);
        const Word object = Place{&block, slot}.address();
        auto* words = reinterpret_cast<Word*>(object);
        if (kind == described().in_object) words[1] = Described::kInObject;
        if (kind == described().behind_first) words[0] = reinterpret_cast<Word>(&behind_first_);
        objects_.push_back(object);
      }
    }
  }

  // Four words have room for every sort of descriptor.
  KindNumber pick_kind(std::size_t size) {
    const Described& d = described();
    const KindNumber choice[] = {kAtomic,     kAtomic,  kNormal,     kNormal,
                                 kNormal,     d.bitmap, d.in_object, d.behind_first,
                                 d.procedure, d.length, d.whole};
    const KindNumber kind = choice[random_() % std::size(choice)];
    return size < 4 * sizeof(Word) && kind >= kBuiltInKinds ? kNormal : kind;
  }

  void link(std::size_t edges) {
    for (std::size_t i = 0; i < edges; ++i) {
      const Word from = objects_[random_() % objects_.size()];
      Place place{};
      ASSERT_TRUE(find_object(from, &place));
      auto* words = reinterpret_cast<Word*>(from);
      const Word to = objects_[random_() % objects_.size()];
      Place target{};
      ASSERT_TRUE(find_object(to, &target));
      const std::size_t word = random_() % (place.size() / sizeof(Word));
      const KindNumber kind = place.block->kind;
      if (kind == described().in_object && word == 1) continue;
      if (kind == described().behind_first && word == 0) continue;
      // Anywhere in the target counts.
      words[word] = to + random_() % target.size();
    }
  }

  // Marks from `root` by the definition: a set and a work list.
  std::vector<Word> reachable(Word root) const {
    std::vector<Word> found;
    std::vector<bool> seen(space.span / kGranule, false);
    std::vector<Word> work{root};
    while (!work.empty()) {
      const Word word = work.back();
      work.pop_back();
      Place place{};
      if (!find_object(word, &place)) continue;
      const std::size_t id = (place.address() - space.base) / kGranule;
      if (seen[id]) continue;
      seen[id] = true;
      found.push_back(place.address());
      const auto* words = reinterpret_cast<const Word*>(place.address());
      for (std::size_t i = 0; i < place.size() / sizeof(Word); ++i) {
        if (is_scanned(place, i)) work.push_back(words[i]);
      }
    }
    return found;
  }

  [[nodiscard]] Word pick() { return objects_[random_() % objects_.size()]; }

  [[nodiscard]] std::size_t marked() const {
    std::size_t count = 0;
    for (const Word object : objects_) {
      Place place{};
      if (find_object(object, &place) && place.marked()) ++count;
    }
    return count;
  }

 private:
  static constexpr Word behind_first_ = Described::kBehindFirst;
  std::mt19937_64 random_;
  std::vector<Word> objects_;
};

struct Case {
  MarkStrategy strategy;
  std::size_t stack;
  unsigned markers = 1;
  // Turns so short are by turns with the rings and without.
  std::uint64_t turn = jd::base::Options{}.mark_turn;
};

#if defined(JD_SANITIZE_THREAD)
constexpr int kSlowness = 5;  // of the test itself, which looks at each object
#else
constexpr int kSlowness = 1;
#endif

class MarkerTest : public testing::TestWithParam<Case> {};

TEST_P(MarkerTest, MarksExactlyWhatIsReachable) {
  const char* given = std::getenv("JD_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("JD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Graph graph(seed);
  graph.make_objects(60000);
  graph.link(400000);
  Marker marker;
  ASSERT_TRUE(marker.initialise(GetParam().stack));
  marker.set_strategy(GetParam().strategy);
  // Helpers of an earlier case may still be there; under ctest each case is a process of its own.
  const unsigned helpers = GetParam().markers - 1;
  team.configure({.markers = helpers + 1,
                  .patience = 1,
                  .turn_entries = GetParam().turn,
                  .stack_entries = GetParam().stack});
  ASSERT_GE(team.start_helpers(), helpers);
  std::size_t overflows = 0;
  const bool overflows_wanted = GetParam().stack == 16 && GetParam().strategy != MarkStrategy::Ring;
  const auto is_tested = [&] {
    return (!overflows_wanted || overflows != 0) && (helpers == 0 || team.counts().packets != 0);
  };
  const int rounds = (helpers != 0 ? 100 : 20) / kSlowness;
  // More where every root so far led to little.
  for (int round = 0; round < rounds || (!is_tested() && round < 10 * rounds); ++round) {
    start_marks();
    const Word root = graph.pick();
    const std::vector<Word> expected = graph.reachable(root);
    const bool alone = helpers != 0 && round % 4 == 3;
    const std::uint64_t packets = team.counts().packets;
    team.begin_collection(alone);
    marker.scan_roots(&root, &root + 1);
    marker.drain();
    if (alone) {
      EXPECT_EQ(team.counts().packets, packets);
    }
    EXPECT_EQ(graph.marked(), expected.size());
    for (const Word object : expected) {
      Place place{};
      ASSERT_TRUE(find_object(object, &place));
      ASSERT_TRUE(place.marked());
    }
    overflows += marker.take_overflows();
  }
  if (overflows_wanted) {
    EXPECT_GT(overflows, 0u) << "the small stack did not overflow, so nothing was tested";
  }
  if (helpers != 0) {
    EXPECT_GT(team.counts().packets, 0u) << "nothing was shared, so nothing was tested";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, MarkerTest,
    testing::Values(Case{MarkStrategy::None, 0}, Case{MarkStrategy::Grey, 0},
                    Case{MarkStrategy::OnGrey, 0}, Case{MarkStrategy::Grey, 16},
                    Case{MarkStrategy::Ring, 0}, Case{MarkStrategy::None, 16},
                    Case{MarkStrategy::OnGrey, 16}, Case{MarkStrategy::Ring, 16},
                    Case{MarkStrategy::None, 0, 4}, Case{MarkStrategy::OnGrey, 16, 3},
                    Case{MarkStrategy::Ring, 0, 2}, Case{MarkStrategy::Ring, 0, 7},
                    Case{MarkStrategy::Ring, 16, 4}, Case{MarkStrategy::Ring, 0, 1, 1},
                    Case{MarkStrategy::Ring, 0, 1, 15}, Case{MarkStrategy::Ring, 16, 1, 3},
                    Case{MarkStrategy::Ring, 0, 4, 5}, Case{MarkStrategy::Ring, 16, 3, 2}));

// Objects of one size, new and clear; none if there is no room.
std::vector<Place> make_all(KindNumber kind, std::size_t size, std::size_t count) {
  std::vector<Place> made;
  while (made.size() < count) {
    const BlockNumber number = make_small_block(kind, class_for(size));
    if (number == kNoBlock) return {};
    Block& block = space.blocks[number];
    for (unsigned slot = 0; slot < block.slots && made.size() < count; ++slot) {
      block.allocated[slot / 64] |= std::uint64_t{1} << (slot % 64);
      made.push_back({&block, slot});
    }
  }
  return made;
}

Word* words_of(const Place& place) { return reinterpret_cast<Word*>(place.address()); }

// So many blocks as a heap of which a stack of so many entries is a long part (marker.cpp).
constexpr BlockNumber kBlocks = 64;
constexpr std::size_t kLongStack = kBlocks * kBlockSize / 8 / sizeof(jd::mark::Entry);

// mark.req.overflow. As the contents of a finalizable object are: queued, though nothing marks the
// object itself. On a long stack they come back through the second ring.
TEST(Stack, AFullOneLosesNothingOfAnUnmarkedObject) {
  constexpr std::size_t kLeast = 16;
  constexpr std::size_t kWords = 4096;
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(kBlocks));
  BlockNumber dirty = 0;
  Block* object = make_large(kNormal, kWords * sizeof(Word), 1, &dirty);
  ASSERT_NE(object, nullptr);
  auto* words = reinterpret_cast<Word*>(block_address(number_of(object)));
  const std::vector<Place> leaves = make_all(kAtomic, 2 * sizeof(Word), kWords);
  ASSERT_EQ(leaves.size(), kWords);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = leaves[i].address();
  // Somebody is hungry from the start, and gets half of the object: the other half's rest finds the
  // stack full.
  team.configure({.markers = 2, .patience = 1, .stack_entries = kLeast});
  ASSERT_GE(team.start_helpers(), 1u);
  for (const std::size_t entries : {kLeast, kLongStack + 256}) {
    Marker marker;
    ASSERT_TRUE(marker.initialise(entries));
    marker.set_strategy(MarkStrategy::Ring);
    for (int round = 0; round < 20; ++round) {
      start_marks();
      const Word nothing = 0;
      for (std::size_t i = 1; i < entries; ++i) marker.push_range(&nothing, &nothing + 1);
      marker.push_contents({object, 0});
      marker.drain();
      ASSERT_FALSE(object->marked(0));
      std::size_t marked = 0;
      for (const Place& leaf : leaves) marked += leaf.marked() ? 1 : 0;
      ASSERT_EQ(marked, kWords) << entries;
    }
  }
}

TEST(TeamSettings, FewObjectsAreMarkedAloneForLonger) {
  team.configure({.markers = 2, .patience = 5, .patience_with_few = 50});
  using jd::mark::Team;
  team.note_collection(Team::kFew - 1, Team::kFewBytes - 1, 0);
  EXPECT_EQ(team.patience(), 50u);
  team.note_collection(Team::kFew, Team::kFewBytes - 1, 0);
  EXPECT_EQ(team.patience(), 5u);
  team.note_collection(Team::kFew - 1, Team::kFewBytes, 0);
  EXPECT_EQ(team.patience(), 5u) << "few, but large";
  team.configure({.markers = 2, .patience = 5});
  team.note_collection(1, 16, 0);
  EXPECT_EQ(team.patience(), 5u);
  team.configure({.markers = 1, .patience = 5});
  EXPECT_EQ(team.patience(), 0u) << "a lone marker has nobody to wake";
}

TEST(TeamSettings, AMarkerThatIsToBeAloneSharesNothing) {
  team.configure({.markers = 2, .patience = 5, .measured = true});
  EXPECT_TRUE(team.is_measured());
  ASSERT_TRUE(reserve_space(16u << 20));
  ASSERT_TRUE(grow(2));
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  team.begin_collection(false);
  EXPECT_FALSE(team.mark(&marker));
  EXPECT_FALSE(team.had_choice()) << "there is no helper";
  ASSERT_GE(team.start_helpers(), 1u);
  team.begin_collection(true);
  EXPECT_FALSE(team.mark(&marker));
  EXPECT_TRUE(team.had_choice());
  team.begin_collection(false);
  EXPECT_FALSE(team.had_choice());
  EXPECT_TRUE(team.mark(&marker));
  EXPECT_TRUE(team.had_choice());
  team.configure({.markers = 1, .measured = true});
  EXPECT_FALSE(team.is_measured());
}

// mark.req.lazy
TEST(TeamSettings, HelpersAreMadeWhenMarkingHasTakenLongEnough) {
  team.configure({.markers = 2, .patience = 5, .worth_threads = 1000});
  ASSERT_TRUE(reserve_space(16u << 20));
  ASSERT_TRUE(grow(2));
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  team.note_collection(jd::mark::Team::kFew, 0, 5000);
  EXPECT_FALSE(team.in_demand()) << "that collection did not want any";
  EXPECT_FALSE(team.mark(&marker));
  EXPECT_FALSE(team.in_demand());
  team.note_collection(jd::mark::Team::kFew, 0, 999);
  EXPECT_FALSE(team.in_demand());
  EXPECT_FALSE(team.mark(&marker));
  team.note_collection(jd::mark::Team::kFew, 0, 1);
  EXPECT_TRUE(team.in_demand());
  // The child of a fork begins anew.
  team.forget_helpers_in_child();
  EXPECT_FALSE(team.in_demand());
  EXPECT_FALSE(team.mark(&marker));
  EXPECT_FALSE(team.in_demand());
  team.note_collection(jd::mark::Team::kFew, 0, 0);
  // Where the system has refused them, nobody asks again but a child.
  const auto mark_for_long = [&] {
    EXPECT_FALSE(team.mark(&marker));
    team.note_collection(jd::mark::Team::kFew, 0, 1000);
  };
  jd::os::fail_from_call(1);
  EXPECT_EQ(team.start_helpers(), 0u);
  jd::os::fail_from_call(0);
  mark_for_long();
  EXPECT_FALSE(team.in_demand());
  team.forget_helpers_in_child();
  mark_for_long();
  EXPECT_TRUE(team.in_demand());
}

// Their rests lie on a long stack as a whole, and come back through the second ring.
TEST(Stack, ALongOneLosesNothingOfWideObjects) {
  constexpr std::size_t kNodeWords = 16;
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(kBlocks));
  const std::vector<Place> nodes = make_all(kNormal, kNodeWords * sizeof(Word), 7000);
  ASSERT_FALSE(nodes.empty());
  std::mt19937_64 random(11);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Word* words = words_of(nodes[i]);
    words[0] = nodes[(i + 1) % nodes.size()].address();
    for (std::size_t w = 1; w < kNodeWords; ++w) {
      words[w] = nodes[random() % nodes.size()].address();
    }
  }
  for (const unsigned markers : {1u, 3u}) {
    team.configure({.markers = markers, .patience = 500});
    ASSERT_GE(team.start_helpers() + 1, markers);
    // Room for all, and for little more than what makes it long.
    for (const std::size_t entries : {std::size_t{0}, kLongStack + 256}) {
      Marker marker;
      ASSERT_TRUE(marker.initialise(entries));
      marker.set_strategy(MarkStrategy::Ring);
      for (int round = 0; round < 20; ++round) {
        start_marks();
        const Word root = nodes[static_cast<std::size_t>(round)].address();
        marker.scan_roots(&root, &root + 1);
        marker.drain();
        std::size_t marked = 0;
        for (const Place& node : nodes) marked += node.marked() ? 1 : 0;
        ASSERT_EQ(marked, nodes.size()) << markers << " markers, " << entries << " entries";
      }
      if (entries != 0 && markers == 1) {
        EXPECT_GT(marker.take_overflows(), 0u) << "the stack was not full, so nothing was tested";
      }
    }
  }
}

// 4096 entries are committed at first, so the last extension is of a few: there may be no
// room for the words of a line, and nobody may write them behind the stack's end.
TEST(Stack, ItsLastExtensionMayBeShorterThanAnObject) {
  constexpr std::size_t kChains = 100;  // more than the ring has room for
  constexpr std::size_t kLength = 200;
  constexpr std::size_t kNodeWords = 8;
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(512));
  const std::vector<Place> nodes = make_all(kNormal, kNodeWords * sizeof(Word), kChains * kLength);
  const std::vector<Place> leaves =
      make_all(kNormal, 2 * sizeof(Word), nodes.size() * (kNodeWords - 1));
  ASSERT_FALSE(nodes.empty() || leaves.empty());
  // A chain's nodes have more leaves each than they have room for in the ring.
  std::vector<Word> roots;
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Word* words = words_of(nodes[i]);
    if (i % kLength == 0) roots.push_back(nodes[i].address());
    words[0] = (i + 1) % kLength == 0 ? 0 : nodes[i + 1].address();
    for (std::size_t w = 1; w < kNodeWords; ++w) words[w] = leaves[leaf++].address();
  }
  team.configure({.markers = 1});
  for (std::size_t entries = 4096; entries < 4096 + 2 * kNodeWords; ++entries) {
    Marker marker;
    ASSERT_TRUE(marker.initialise(entries));
    marker.set_strategy(MarkStrategy::Ring);
    start_marks();
    // As one range, whose words fill the ring.
    marker.push_range(roots.data(), roots.data() + roots.size());
    marker.drain();
    EXPECT_GT(marker.take_overflows(), 0u) << "the stack was not full, so nothing was tested";
    for (const Place& node : nodes) ASSERT_TRUE(node.marked()) << entries;
    for (const Place& place : leaves) ASSERT_TRUE(place.marked()) << entries;
  }
}

TEST(Roots, OnePastTheEndHoldsTheObjectBefore) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(16));
  const BlockNumber number = make_small_block(kNormal, class_for(32));
  Block& block = space.blocks[number];
  block.allocated[0] = 9;  // slots 0 and 3; slot 1 is free, with a word of its past
  *reinterpret_cast<Word*>(block_address(number) + 32) = block_address(number) + 96;
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  marker.set_strategy(MarkStrategy::Ring);
  const Word past = block_address(number) + 32;
  start_marks();
  marker.scan_stack(&past, &past + 1, true);
  marker.drain();
  EXPECT_TRUE(block.marked(0));
  EXPECT_FALSE(block.marked(3)) << "a free slot's words are not followed";
  // The same word inside the heap holds only what it points into.
  block.allocated[0] = 5;
  *reinterpret_cast<Word*>(block_address(number) + 64) = past;
  start_marks();
  const Word root = block_address(number) + 65;
  marker.scan_roots(&root, &root + 1);
  marker.drain();
  EXPECT_TRUE(block.marked(2));
  EXPECT_FALSE(block.marked(0));
}

// Deep stacks hold the same words again and again, and only some are looked at anew each time.
TEST(Roots, OfAStackEveryWordCounts) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  std::mt19937_64 random(7);
  std::vector<BlockNumber> blocks;
  for (const std::size_t size : {16, 24, 32, 48, 80, 96, 240, 512}) {
    const unsigned size_class = class_for(size);
    blocks.push_back(make_small_block(kNormal, size_class));
    Block& block = space.blocks[blocks.back()];
    for (unsigned slot = 0; slot < block.slots; ++slot) {
      if (random() % 4 == 0) continue;
      block.allocated[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
    std::memset(jd::base::as_pointer(block_address(blocks.back())), 0, kBlockSize);
  }
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  marker.set_strategy(MarkStrategy::Ring);
  for (const std::size_t depth : {1, 7, 8, 63, 1000, 20000}) {
    // Few different words, of all sorts, so that most come often and some push others out.
    std::vector<Word> words(depth / 3 + 1);
    for (Word& word : words) {
      word = block_address(blocks[random() % blocks.size()]) + random() % kBlockSize;
      if (random() % 2 == 0) word -= word % kGranule;
      if (random() % 4 == 0) word = random() % 2 == 0 ? random() % 4096 : random();
    }
    std::vector<Word> stack(depth);
    for (Word& word : stack) word = words[random() % words.size()];
    std::set<Word> expected;
    const auto expect = [&](Word word, Word offset_back) {
      Place place{};
      if (!in_heap(word - offset_back) || !find_object(word - offset_back, &place)) return;
      const bool past_the_end = word % kGranule == 0 && is_full_class(place.block->size_class) &&
                                place.address() + place.size() == word;
      if (offset_back == 0 || past_the_end) expected.insert(place.address());
    };
    for (const Word word : stack) {
      expect(word, 0);
      expect(word, 1);
    }
    start_marks();
    marker.scan_stack(stack.data(), stack.data() + stack.size(), true);
    marker.drain();
    std::set<Word> marked;
    for (const BlockNumber number : blocks) {
      const Block& block = space.blocks[number];
      for (unsigned slot = 0; slot < block.slots; ++slot) {
        if (block.is_allocated(slot) && block.marked(slot)) {
          marked.insert(block_address(number) + Word{slot} * block.slot_size);
        }
      }
    }
    EXPECT_EQ(marked, expected) << depth;
  }
}

TEST(Roots, OnePastTheEndOfALargeObjectAcrossBlocks) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(16));
  BlockNumber dirty = 0;
  Block* first = make_large(kNormal, 2 * kBlockSize, 1, &dirty);
  Block* second = make_large(kNormal, kBlockSize, 1, &dirty);
  ASSERT_EQ(number_of(second), number_of(first) + 2);
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  marker.set_strategy(MarkStrategy::Ring);
  start_marks();
  const Word past = block_address(number_of(second));
  marker.scan_stack(&past, &past + 1, true);
  marker.drain();
  EXPECT_TRUE(first->marked(0));
  EXPECT_TRUE(second->marked(0));
}

}  // namespace
