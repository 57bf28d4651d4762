// Layouts: what jd_layout_define refuses; the policy that is chosen with the first.
#include <cstring>
#include <string>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

constexpr std::uint64_t kFirst[2] = {1, 0};

// The one line on standard error.
testing::AssertionResult is_refused(const jd_layout_info& info, const char* why) {
  testing::internal::CaptureStderr();
  const jd_layout* layout = jd_layout_define(&info);
  const std::string said = testing::internal::GetCapturedStderr();
  if (layout != nullptr) return testing::AssertionFailure() << "was defined";
  if (said.find(info.name) == std::string::npos) {
    return testing::AssertionFailure() << "the message does not name the layout: " << said;
  }
  if (said.find(why) == std::string::npos) {
    return testing::AssertionFailure() << "the message does not say why: " << said;
  }
  if (count_lines(said) != 1) return testing::AssertionFailure() << "more than a line: " << said;
  return testing::AssertionSuccess();
}

class Refusal : public EachSource {};
JD_EACH_SOURCE(Refusal);

TEST_P(Refusal, BitBeyondTheSize) {
  const std::uint64_t third[] = {8};
  EXPECT_TRUE(is_refused(info_of("three words", GetParam(), 24, third), "beyond the size"));
  // In the second word of the bitmap.
  const std::uint64_t bits[] = {0, 2};
  EXPECT_TRUE(is_refused(info_of("65 words", GetParam(), 65 * 8, bits), "beyond the size"));
}

TEST_P(Refusal, SizesThatNothingHas) {
  EXPECT_TRUE(is_refused(info_of("huge", GetParam(), SIZE_MAX), "size"));
  EXPECT_TRUE(is_refused(info_of("round", GetParam(), SIZE_MAX - 6), "size"));
  EXPECT_TRUE(is_refused(info_of("half", GetParam(), SIZE_MAX / 2), "size"));
  EXPECT_TRUE(is_refused(info_of("nothing", GetParam(), 0), "no size"));
}

// A size that fits into 64 bits, but not into a layout's fields.
TEST_P(Refusal, SizesOfMoreThanALayoutHolds) {
  jd_layout_info info = info_of("elements", GetParam(), 32);
  info.count_offset = GetParam() == JD_SELF ? 8 : 0;
  info.element_size = std::size_t{1} << 32;
  EXPECT_TRUE(is_refused(info, "size"));
  info.element_size += 8;
  EXPECT_TRUE(is_refused(info, "size"));
  info.element_size = std::size_t{1} << 60;
  EXPECT_TRUE(is_refused(info, "size"));
}

TEST_P(Refusal, ElementSizes) {
  for (const std::size_t size : {3, 5, 6, 7, 9, 12, 20}) {
    jd_layout_info info = info_of("elements", GetParam(), 24);
    info.count_offset = GetParam() == JD_SELF ? 8 : 0;
    info.element_size = size;
    EXPECT_TRUE(is_refused(info, "an element has")) << size;
  }
}

TEST_P(Refusal, PointersInElements) {
  jd_layout_info info = info_of("elements", GetParam(), 24);
  info.count_offset = GetParam() == JD_SELF ? 8 : 0;
  info.element_pointers = kFirst;
  EXPECT_TRUE(is_refused(info, "no size"));
  for (const std::size_t size : {1, 2, 4}) {
    info.element_size = size;
    EXPECT_TRUE(is_refused(info, "less than 8")) << size;
  }
  const std::uint64_t third[] = {4};
  info.element_size = 16;
  info.element_pointers = third;
  EXPECT_TRUE(is_refused(info, "beyond the element"));
}

TEST_P(Refusal, TraceProcedureAndBitmap) {
  jd_layout_info info = info_of("both", GetParam(), 32, GetParam() == JD_SELF ? nullptr : kFirst);
  static const std::uint64_t second = 2;
  if (GetParam() == JD_SELF) info.pointers = &second;
  info.trace = [](void*, std::size_t, jd_tracer*) {};
  EXPECT_TRUE(is_refused(info, "instead of bitmaps"));
}

TEST(Refusal, NoSuchSource) {
  for (const int source : {3, -1, 1 << 30}) {
    jd_layout_info info = info_of("odd", JD_HEADER, 16);
    // As a program in C may.
    std::memcpy(&info.source, &source, sizeof source);
    EXPECT_TRUE(is_refused(info, "no such source"));
  }
}

TEST(Refusal, SelfWithoutAFirstWord) {
  EXPECT_TRUE(is_refused(info_of("self", JD_SELF, 16, kFirst), "first word"));
  jd_layout_info info = info_of("self", JD_SELF, 0);
  info.element_size = 8;
  info.count_offset = 8;
  EXPECT_TRUE(is_refused(info, "first word"));
}

TEST(Refusal, CountOutsideOfTheFixedPart) {
  jd_layout_info info = info_of("self", JD_SELF, 24);
  info.element_size = 8;
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{4}, std::size_t{12}, std::size_t{24}, std::size_t{1} << 32,
        (std::size_t{1} << 32) + 8, SIZE_MAX - 7, SIZE_MAX}) {
    info.count_offset = offset;
    EXPECT_TRUE(is_refused(info, "number of elements")) << offset;
  }
  const std::uint64_t second[] = {2};
  info.pointers = second;
  info.count_offset = 8;
  EXPECT_TRUE(is_refused(info, "pointer word"));
}

TEST(Refusal, NoName) {
  jd_layout_info info = info_of("", JD_HEADER, 0);
  info.name = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(jd_layout_define(&info), nullptr);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("without a name"), std::string::npos);
}

// In a child, so that the other tests have some left.
JD_CHILD(too_many_homogeneous) {
  GC_INIT();
  std::vector<jd_layout*> layouts;
  for (int i = 0; i < JD_MAX_HOMOGENEOUS; ++i) {
    layouts.push_back(define_node("node", JD_HOMOGENEOUS, static_cast<std::size_t>(i) % 5));
    if (layouts.back() == nullptr) return 1;
  }
  if (define_node("one more", JD_HOMOGENEOUS) != nullptr) return 2;
  // The others still work, and so do those of other sources and weak references.
  for (jd_layout* layout : layouts) {
    if (jd_layout_of(jd_new(layout)) != layout) return 3;
  }
  for (const jd_source source : {JD_HEADER, JD_SELF}) {
    const jd_layout* layout = define_node("another source", source);
    if (layout == nullptr || jd_layout_of(jd_new(layout)) != layout) return 4;
  }
  void* object = jd_new(layouts[0]);
  if (jd_weak_get(jd_weak_new(object)) != object) return 5;
  return jd_ephemeron_key(jd_ephemeron_new(object, nullptr)) == object ? 0 : 6;
}
TEST(Refusal, TooManyHomogeneousLayouts) {
  JD_SKIP_IF_MCC("there are no homogeneous layouts");
  const ChildResult r = run_child("too_many_homogeneous");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "one more"), 1U) << r;
  EXPECT_EQ(lines_with(r.err, "too many"), 1U) << r;
}

TEST(Refusal, ToResizeATypedObject) {
  jd_layout* layout = define_node("node", JD_HOMOGENEOUS, 40);
  ASSERT_NE(layout, nullptr);
  void* volatile object = jd_new(layout);
  testing::internal::CaptureStderr();
  EXPECT_EQ(GC_realloc(object, 16), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(said, "layout"), 1U) << said;
  EXPECT_EQ(jd_layout_of(object), layout);
}

// Else the slot's next object had the pins, the number and the weak references of this one.
TEST_P(Refusal, ToFreeATypedObject) {
  // In blocks of all sizes or of one, and in blocks of its own.
  for (const std::size_t size : {std::size_t{32}, std::size_t{6000}, std::size_t{100000}}) {
    const jd_layout_info info = info_of("bytes", GetParam(), size);
    const jd_layout* layout = jd_layout_define(&info);
    ASSERT_NE(layout, nullptr);
    void* volatile object = jd_new(layout);
    const jd_weak* weak = jd_weak_new(object);
    testing::internal::CaptureStderr();
    GC_free(object);
    GC_free(const_cast<jd_weak*>(weak));
    EXPECT_EQ(GC_realloc(object, 0), nullptr);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(lines_with(said, "only collected"), 3U) << said;
    EXPECT_EQ(jd_layout_of(object), layout);
    EXPECT_EQ(jd_weak_get(weak), object);
    EXPECT_NE(jd_new(layout), object);
  }
}

JD_CHILD(crooked_root) {
  GC_INIT();
  alignas(8) static char variable[16] = {};
  jd_root_add(variable + 4);
  return 0;
}
TEST(Roots, ThatAreNotAlignedEndTheProgram) {
  const ChildResult r = run_child("crooked_root");
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("not aligned"), std::string::npos) << r;
}

template <class Make>
int make_like(const void* weak, Make make) {
  const jd_layout* layout = jd_layout_of(weak);
  if (layout == nullptr) return 1;
  make(layout);
  return 2;
}
JD_CHILD(new_weak) {
  GC_INIT();
  return make_like(jd_weak_new(nullptr), [](const jd_layout* layout) { jd_new(layout); });
}
JD_CHILD(new_ephemeron) {
  GC_INIT();
  return make_like(jd_ephemeron_new(nullptr, nullptr),
                   [](const jd_layout* layout) { jd_new_array(layout, 0); });
}
TEST(Refusal, ToMakeWeakReferencesByTheirLayout) {
  for (const char* child : {"new_weak", "new_ephemeron"}) {
    const ChildResult r = run_child(child);
    EXPECT_EQ(r.signal, SIGABRT) << r;
    EXPECT_EQ(lines_with(r.err, "only jd_weak_new"), 1U) << r;
  }
}

TEST(Refusal, NullPointers) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(jd_layout_define(nullptr), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(said, "null pointer"), 1U) << said;
}

JD_CHILD(null_root) {
  GC_INIT();
  jd_root_add(nullptr);
  return 0;
}
TEST(Roots, ThatAreNullEndTheProgram) {
  const ChildResult r = run_child("null_root");
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("jd_root_add"), std::string::npos) << r;
}

// ---- Room ----

// Fills the heap with untyped objects, whose number it returns; `most` or more do not fit.
std::size_t fill(std::size_t size, void** objects, std::size_t most) {
  std::size_t count = 0;
  for (void* p = GC_malloc(size); p != nullptr && count < most; p = GC_malloc(size)) {
    objects[count++] = p;
  }
  asm volatile("" : : "r"(objects) : "memory");
  return count;
}

// A heap that may not grow, whose free blocks lie between objects that do not move: more of them
// than are asked for, and nowhere enough side by side. Compaction cannot help, and is not tried for
// ever.
JD_CHILD(no_room_side_by_side) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size(4U << 20);
  const Nodes nodes(JD_HEADER);
  Cell typed(nodes.sparse_list(10, 1));
  constexpr std::size_t kBlock = 16000;
  static void* blocks[512];
  const std::size_t count = fill(kBlock, blocks, 512);
  if (count < 100 || count == 512) return 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (reinterpret_cast<std::uintptr_t>(blocks[i]) / (16 << 10) % 2 == 0) blocks[i] = nullptr;
  }
  asm volatile("" : : "r"(blocks) : "memory");
  if (GC_malloc(3 * kBlock) != nullptr) return 2;
  if (GC_malloc(kBlock) == nullptr) return 3;
  return nodes.is_list(typed.get(), 10) ? 0 : 4;
}
TEST(Room, BetweenObjectsThatStayIsNoneForLongOnes) {
  JD_SKIP_IF_MCC("a third of the heap waits for copies, in one piece");
  const ChildResult r = run_child("no_room_side_by_side");
  EXPECT_TRUE(r.ok()) << r;
}

// A heap that may not grow, with gaps between objects that do not move, each shorter than what is
// asked for: there is an end to it.
int fill_where_gaps_are_short(jd_source source) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size((allocations_are_dear() ? 768U : 4096U) << 10);
  constexpr std::size_t kMost = 60000;
  static void* objects[kMost];
  const jd_layout* const little = define_node("little", source, 10);
  std::size_t count = 0;
  for (void* p = jd_new(little); p != nullptr && count < kMost; p = jd_new(little)) {
    objects[count++] = p;
  }
  if (count < 1000 || count == kMost) return 1;
  for (std::size_t i = 0; i < count; i += 2) objects[i] = nullptr;
  asm volatile("" : : "r"(objects) : "memory");
  const jd_layout* const longer = define_node("longer", source, 40);
  std::size_t made = 0;
  while (jd_new(longer) != nullptr) {
    if (++made == kMost) return 2;
  }
  // (Under JD_MCC the last copies may have taken all.)
  return is_mcc() || jd_new(little) != nullptr ? 0 : 3;
}
JD_CHILD(short_gaps_header) { return fill_where_gaps_are_short(JD_HEADER); }
JD_CHILD(short_gaps_self) { return fill_where_gaps_are_short(JD_SELF); }
// copy.req.abort
TEST(Room, InGapsIsNoneForWhatIsLonger) {
  for (const char* child : {"short_gaps_header", "short_gaps_self"}) {
    const ChildResult r = run_child(child);
    EXPECT_TRUE(r.ok()) << r;
  }
}

// What the program's out-of-memory function gives is an object as any other.
JD_CHILD(memory_of_the_program) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_set_max_heap_size(1U << 20);
  alignas(16) static char spare[256];
  GC_set_oom_fn([](std::size_t) -> void* { return spare; });
  constexpr std::size_t kMost = 60000;
  static void* objects[kMost];
  const jd_layout* const layout = define_node("self", JD_SELF, 10);
  for (void*& object : objects) {
    object = jd_new(layout);
    if (object != spare) continue;
    return *static_cast<const jd_layout**>(object) == layout ? 0 : 1;
  }
  return 2;
}
TEST(Room, OfTheProgramsOwnIsAnObjectToo) {
  const ChildResult r = run_child("memory_of_the_program");
  EXPECT_TRUE(r.ok()) << r;
}

// Untyped objects beside a typed one, in a heap that may not grow: those that the program let go of
// are room at once, in blocks that are full of others, too.
JD_CHILD(room_among_others) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  const std::size_t megabytes = allocations_are_dear() ? 1 : 4;
  GC_set_max_heap_size(megabytes << 20);
  const Nodes nodes(JD_HEADER);
  Cell typed(nodes.sparse_list(10, 1));
  constexpr std::size_t kSize = 64;
  constexpr std::size_t kMost = 100000;
  static void* objects[kMost];
  const std::size_t count = fill(kSize, objects, kMost);
  if (count < 2500 * megabytes || count == kMost) return 1;
  const auto let_go = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 2) objects[i] = nullptr;
    asm volatile("" : : "r"(objects) : "memory");
  };
  let_go(0, count / 10);
  // A little of it, then more is wanted than is left.
  for (std::size_t i = 0; i < count / 40; ++i) {
    objects[2 * i] = GC_malloc(kSize);
    if (objects[2 * i] == nullptr) return 2;
  }
  asm volatile("" : : "r"(objects) : "memory");
  let_go(count / 2, count);
  for (std::size_t i = 0; i < count / 5; ++i) {
    if (GC_malloc(kSize) == nullptr) return 3;
  }
  return nodes.is_list(typed.get(), 10) ? 0 : 4;
}
TEST(Room, AmongObjectsThatStayIsFoundForShortOnes) {
  JD_SKIP_IF_MCC("a third of the heap waits for copies");
  const ChildResult r = run_child("room_among_others");
  EXPECT_TRUE(r.ok()) << r;
}

// A heap that may not grow, in which small objects live and die while now and then some large ones
// are wanted. What these need is kept free, instead of made by compacting each time: 12 to 15 times
// with heaps of 8600 and 8800 KiB, in release and debug, for 53 and 59 with nothing kept; under
// ThreadSanitizer 27, and 34 in some runs. (With 8192 KiB it was 17 or 33 for 34: a block more or
// less decided.)
JD_CHILD(room_for_large_ones) {
  GC_INIT();
  GC_set_max_heap_size(8700U << 10);
  const Nodes nodes(JD_HEADER);
  constexpr std::size_t kNodes = 30000;
  constexpr int kRounds = 60;
  static void* large[6];
  Cell old(nullptr);
  const std::uint64_t began = jd_epoch();
  for (int round = 0; round < kRounds; ++round) {
    Cell list(nodes.sparse_list(kNodes, 4));
    for (void*& object : large) {
      object = GC_malloc_atomic(40000);
      if (object == nullptr) return 1;
    }
    asm volatile("" : : "r"(large) : "memory");
    if (!nodes.is_list(list.get(), kNodes)) return 2;
    old.set(list.get());
  }
  const std::uint64_t compactions = jd_epoch() - began;
  std::printf("%llu compactions in %d rounds\n", static_cast<unsigned long long>(compactions),
              kRounds);
  return compactions < kRounds * 2 / 3 ? 0 : 3;
}
TEST(Room, ForLargeOnesIsKept) {
  const ChildResult r = run_child("room_for_large_ones", {{"JACKDAW_MOVE", kUnset},
                                                          {"JACKDAW_COLLECT_EVERY", kUnset},
                                                          {"JACKDAW_POLICY", "evacuate"}});
  EXPECT_TRUE(r.ok()) << r;
}

// ---- Policy ----

JD_CHILD(policy_by_program) {
  GC_INIT();
  if (jd_heap_get_policy() != JD_EVACUATE) return 1;
  if (jd_heap_set_policy(JD_NON_MOVING) != 1) return 2;
  if (jd_heap_get_policy() != JD_NON_MOVING) return 3;
  const Nodes nodes(JD_HEADER);
  if (jd_heap_get_policy() != JD_NON_MOVING) return 4;
  if (jd_heap_set_policy(JD_EVACUATE) != 0) return 5;
  const std::uint64_t epoch = jd_epoch();
  Cell list(nodes.sparse_list(2000, 8));
  compact();
  return jd_epoch() == epoch && nodes.is_list(list.get(), 2000) ? 0 : 6;
}
// What comes before the first layout must not settle the policy.
JD_CHILD(policy_after_other_calls) {
  GC_INIT();
  static void* variable;
  if (jd_root_add(&variable) == 0 || jd_weak_new(nullptr) == nullptr) return 1;
  const Nodes nodes(JD_HEADER);
  return jd_heap_get_policy() == JD_NON_MOVING ? 0 : 2;
}
TEST(Policy, IsChosenBeforeTheFirstLayout) {
  const ChildResult r = run_child("policy_by_program", {{"JACKDAW_POLICY", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}
TEST(Policy, OfTheEnvironmentHoldsWhateverComesFirst) {
  const ChildResult r = run_child("policy_after_other_calls", {{"JACKDAW_POLICY", "non-moving"}});
  EXPECT_TRUE(r.ok()) << r;
}
JD_CHILD(policy_overruled) {
  GC_INIT();
  jd_heap_set_policy(JD_EVACUATE);
  return jd_heap_get_policy() == JD_NON_MOVING ? 0 : 1;
}
TEST(Policy, OfTheEnvironmentOverrules) {
  const ChildResult r = run_child("policy_overruled", {{"JACKDAW_POLICY", "non-moving"}});
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test
