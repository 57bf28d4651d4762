// Loops, reductions and sorting by forks. Included by task.hpp, which says what tasks may do.
#pragma once

#include <jackdaw/task.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace jd {

// Asks loops to stop: pieces that have not begun are left out.
class cancellation {
 public:
  void cancel() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

struct loop_options {
  std::size_t grain = 0;  // the longest piece that is not cut; 0: by length and workers
  const cancellation* cancel = nullptr;
};

inline namespace [[gnu::visibility("hidden")]] JD_TASK_CODE {
namespace task_detail {

// How a loop is cut: what is no longer than a grain is not; and if it goes in few pieces, what is
// no longer than such a piece only where somebody wants a part of it.
struct Cut {
  std::size_t grain;
  std::size_t piece;  // 0: none of these
};

inline std::size_t grain_for(std::size_t length, std::size_t wanted) {
  // 64 pieces a worker: enough for them to end at about the same time, where pieces differ.
  constexpr std::size_t kPieces = 64;
  if (wanted != 0) return wanted;
  return std::max<std::size_t>(1, length / (kPieces * jd_task_workers()));
}
// The length of few pieces. More would be stolen although they are not worth it: with 8 a worker
// such loops took twice the processor time ("Short loops in workers" in
// docs/design/task-measured.md).
inline std::size_t few_pieces_for(std::size_t length) {
  constexpr std::size_t kPieces = 4;
  return (length - 1) / (kPieces * jd_task_workers()) + 1;
}

// What was thrown first by several parts of one call. Asked for when all have ended.
class FirstThrown {
 public:
#if defined(__cpp_exceptions)
  // Keeps what is being handled, if nothing was thrown before.
  void note() noexcept {
    if (!any_.exchange(true, std::memory_order_acq_rel)) exception_ = caught();
  }
#endif
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Pre: any(). Post: not any more.
  [[noreturn]] void rethrow() {
    std::exception_ptr first = std::move(exception_);
    exception_ = nullptr;
    any_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::move(first));
  }

 private:
  std::atomic<bool> any_{false};
  std::exception_ptr exception_;
};

// f(), which is such a part; what it throws goes on.
template <class F>
decltype(auto) part_of(FirstThrown& thrown, F f) {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (...) {
    thrown.note();
    throw;
  }
#else
  static_cast<void>(thrown);
  return f();
#endif
}
// f(), which is all of it: throws what a part threw first. Each join on the way throws, of two, the
// one that came to it first, which may be another.
template <class F>
decltype(auto) whole_of(FirstThrown& thrown, F f) {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (...) {
    if (thrown.any()) thrown.rethrow();
    throw;
  }
#else
  static_cast<void>(thrown);
  return f();
#endif
}

// body(begin, end) on pieces; the recursion is the parallel one.
template <class Body>
void for_pieces(std::size_t begin, std::size_t end, std::size_t grain, const cancellation* cancel,
                Body& body) {
  if (cancel != nullptr && cancel->requested()) return;
  if (end - begin <= grain) {
    body(begin, end);
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  par([&, begin, middle] { for_pieces(begin, middle, grain, cancel, body); },
      [&, middle, end] { for_pieces(middle, end, grain, cancel, body); });
}

// A piece that is cancelled is map(begin, begin).
template <class T, class Map, class Combine>
T reduce_pieces(std::size_t begin, std::size_t end, std::size_t grain, const cancellation* cancel,
                Map& map, Combine& combine) {
  if (cancel != nullptr && cancel->requested()) return map(begin, begin);
  if (end - begin <= grain) return map(begin, end);
  const std::size_t middle = begin + (end - begin) / 2;
  auto halves = par(
      [&, begin, middle] { return reduce_pieces<T>(begin, middle, grain, cancel, map, combine); },
      [&, middle, end] { return reduce_pieces<T>(middle, end, grain, cancel, map, combine); });
  return std::invoke(combine, std::move(halves.first), std::move(halves.second));
}

// Does somebody want a part of what the caller, a worker, has yet to do?
inline bool is_wanted() { return jd_task_is_direct() == 0 && jd_task_fork_is_wanted() != 0; }

// The same on few pieces. Each is done in steps that grow. Before each the caller looks whether
// somebody wants a part of what is left; then it is cut.
template <class Body>
void for_few_pieces(std::size_t begin, std::size_t end, const Cut& cut, const cancellation* cancel,
                    Body& body) {
  for (std::size_t step = cut.grain;; step *= 2) {
    if (cancel != nullptr && cancel->requested()) return;
    if (end - begin <= step) return body(begin, end);
    if (end - begin > cut.piece || is_wanted()) break;
    body(begin, begin + step);
    begin += step;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  par([&, begin, middle] { for_few_pieces(begin, middle, cut, cancel, body); },
      [&, middle, end] { for_few_pieces(middle, end, cut, cancel, body); });
}
// add(begin, end, result) goes on from a result.
template <class T, class Add, class Combine>
T reduce_few_pieces(std::size_t begin, std::size_t end, const Cut& cut, const cancellation* cancel,
                    const T& identity, Add& add, Combine& combine) {
  // What combine returns can be assigned to a T; whether a T can nobody has asked.
  std::optional<T> result;
  const auto go_on = [&] { return result.has_value() ? std::move(*result) : identity; };
  for (std::size_t step = cut.grain;; step *= 2) {
    if (cancel != nullptr && cancel->requested()) return go_on();
    if (end - begin <= step) return add(begin, end, go_on());
    if (end - begin > cut.piece || is_wanted()) break;
    T next = add(begin, begin + step, go_on());
    result.emplace(std::move(next));
    begin += step;
  }
  const auto part = [&](std::size_t first, std::size_t last) {
    return reduce_few_pieces<T>(first, last, cut, cancel, identity, add, combine);
  };
  const std::size_t middle = begin + (end - begin) / 2;
  auto halves = par([&, begin, middle] { return part(begin, middle); },
                    [&, middle, end] { return part(middle, end); });
  T rest = std::invoke(combine, std::move(halves.first), std::move(halves.second));
  if (!result.has_value()) return rest;
  return std::invoke(combine, std::move(*result), std::move(rest));
}

// each(i) for the indices of a piece, until the loop is cancelled. One that can't be has a loop of
// its own, in which nothing keeps the compiler from vectorizing.
template <class Each>
void for_indices(std::size_t begin, std::size_t end, const cancellation* cancel, Each each) {
  if (cancel == nullptr) {
    for (std::size_t i = begin; i < end; ++i) each(i);
    return;
  }
  for (std::size_t i = begin; i < end && !cancel->requested(); ++i) each(i);
}

// What a reduction of what map returns has to be. Where it is not, check_reduction() says so.
template <class T, class Mapped, class Combine>
concept Reduces =
    std::is_copy_constructible_v<T> && std::is_invocable_r_v<T, Combine&, T, Mapped> &&
    std::is_invocable_r_v<T, Combine&, T, T> &&
    std::is_assignable_v<T&, std::invoke_result_t<Combine&, T, Mapped>>;
template <class T, class Mapped, class Combine>
constexpr void check_reduction() {
  constexpr bool takes_mapped = std::is_invocable_r_v<T, Combine&, T, Mapped>;
  static_assert(std::is_copy_constructible_v<T>, "each piece begins with a copy of identity");
  static_assert(takes_mapped, "combine is called with the result so far and what map returned");
  static_assert(std::is_invocable_r_v<T, Combine&, T, T>,
                "combine is called with the results of two pieces");
  if constexpr (takes_mapped) {
    static_assert(std::is_assignable_v<T&, std::invoke_result_t<Combine&, T, Mapped>>,
                  "what combine returned is assigned to the result so far");
  }
}

// combine(…combine(result, map(at(begin)))…, map(at(end - 1))). What at(i) returns lives until it
// has been combined. A function of its own, which has and returns the result by value: GCC keeps
// one that is a double in memory, and stores it for each index, where this is inlined into what
// makes other calls, too.
template <class T, class At, class Map, class Combine>
[[gnu::noinline]] T reduce_indices(std::size_t begin, std::size_t end, const cancellation* cancel,
                                   T result, At& at, Map& map, Combine& combine) {
  for_indices(begin, end, cancel, [&](std::size_t i) {
    result = std::invoke(combine, std::move(result), std::invoke(map, at(i)));
  });
  return result;
}

// The same of all indices, in parallel; from identity on.
template <class T, class At, class Map, class Combine>
T reduce(std::size_t length, const T& identity, At& at, Map& map, Combine& combine,
         const loop_options& options) {
  auto add = [&, cancel = options.cancel](std::size_t begin, std::size_t end, T result) {
    return reduce_indices<T>(begin, end, cancel, std::move(result), at, map, combine);
  };
  using Function = std::pair<Map, Combine>;
  std::size_t begin = 0;
  auto rest = [&](const Cut& cut) {
    FirstThrown thrown;
    auto add_part = [&](std::size_t first, std::size_t last, T result) {
      return part_of(thrown, [&] { return add(first, last, std::move(result)); });
    };
    auto combine_parts = [&](T left, T right) -> T {
      return part_of(
          thrown, [&]() -> T { return std::invoke(combine, std::move(left), std::move(right)); });
    };
    return whole_of(thrown, [&] {
      if (cut.piece != 0) {
        return reduce_few_pieces<T>(begin, length, cut, options.cancel, identity, add_part,
                                    combine_parts);
      }
      auto piece = [&](std::size_t first, std::size_t last) {
        return add_part(first, last, identity);
      };
      return reduce_pieces<T>(begin, length, cut.grain, options.cancel, piece, combine_parts);
    });
  };
  if (jd_task_in_worker() != 0) return run_in_worker<Function>(length, options.grain, rest);
  const ShortRun here(shortness<Function>);
  if (!here.is_expected()) return hand_over<Function>(length, options.grain, rest);
  // What combine returns can be assigned to a T; whether a T can nobody has asked.
  std::optional<T> result(identity);
  begin = steps_here(length, here, [&](std::size_t first, std::size_t last) {
    T next = add(first, last, std::move(*result));
    result.emplace(std::move(next));
  });
  if (begin == length) return std::move(*result);
  return std::invoke(combine, std::move(*result), hand_over<Function>(length, options.grain, rest));
}

// Remembers how long something took, whatever it throws.
template <class Function>
struct Timed {
  std::int64_t began = now();
  ~Timed() { shortness<Function>.note(now() - began); }
};

// work(cut), by a worker: in few pieces what has proved short.
template <class Function, class Work>
auto run_in_worker(std::size_t length, std::size_t grain, Work work) {
  // So many single indices are cut in the time of two looks at the clock.
  constexpr std::size_t kFew = 32;
  if (grain == 0 && length <= kFew) grain = 1;
  if (grain != 0) return work(Cut{grain, 0});
  const bool is_short = shortness<Function>.is_expected();
  const Cut cut{grain_for(length, 0), is_short ? few_pieces_for(length) : 0};
  const Timed<Function> timed;
  return work(cut);
}
// The same for a thread that is none.
template <class Function, class Work>
auto hand_over(std::size_t length, std::size_t grain, Work work) {
  return run([&] {
    const Timed<Function> timed;
    return work(Cut{grain_for(length, grain), 0});
  });
}

// step(begin, end) on steps of [0, length), while it is short. Returns where it stopped. They grow,
// so that little is done by the caller alone where an index takes longer than those before.
template <class Step>
std::size_t steps_here(std::size_t length, const ShortRun& here, Step step) {
  std::size_t begin = 0;
  for (std::size_t size = 1; begin < length; size = std::min(2 * size, length / 8 + 1)) {
    const std::size_t end = begin + std::min(size, length - begin);
    step(begin, end);
    begin = end;
    if (here.is_over()) break;
  }
  return begin;
}

// body on pieces of [0, length), for anybody.
template <class Function, class Body>
void for_all(std::size_t length, loop_options options, Body& body) {
  std::size_t begin = 0;
  auto rest = [&](const Cut& cut) {
    FirstThrown thrown;
    auto part = [&](std::size_t first, std::size_t last) {
      part_of(thrown, [&] { body(first, last); });
    };
    whole_of(thrown, [&] {
      if (cut.piece != 0) return for_few_pieces(begin, length, cut, options.cancel, part);
      for_pieces(begin, length, cut.grain, options.cancel, part);
    });
  };
  if (jd_task_in_worker() != 0) return run_in_worker<Function>(length, options.grain, rest);
  const ShortRun here(shortness<Function>);
  if (!here.is_expected()) return hand_over<Function>(length, options.grain, rest);
  // What throws ends its step, as it would its piece.
  std::exception_ptr thrown;
  const auto keep_first = [&](auto& part) {
    Outcome<void> outcome;  // NOLINT(clang-analyzer-optin.cplusplus.UninitializedObject)
    outcome.run(part);
    if (outcome.threw() && thrown == nullptr) {
      thrown = outcome.take_exception();
    } else {
      outcome.drop();
    }
  };
  begin = steps_here(length, here, [&](std::size_t from, std::size_t to) {
    auto step = [&] { body(from, to); };
    keep_first(step);
  });
  if (begin < length) {
    auto handed = [&] { hand_over<Function>(length, options.grain, rest); };
    keep_first(handed);
  }
  if (thrown != nullptr) std::rethrow_exception(std::move(thrown));
}

// The number of indices in [first, last), which is not empty. Without sign: the difference of two
// ints may be no int.
template <class I>
std::size_t length_of(I first, I last) {
  static_assert(sizeof(I) <= sizeof(std::size_t), "an index must have at most 64 bits");
  return static_cast<std::size_t>(last) - static_cast<std::size_t>(first);
}

}  // namespace task_detail

// f(i) for each i of [first, last).
template <std::integral I, class F>
void parallel_for(I first, I last, F&& f, loop_options options = {}) {
  constexpr bool takes_index = std::is_invocable_v<F&, I>;
  static_assert(takes_index, "the body of this loop is called with an index");
  if constexpr (takes_index) {
    if (!(first < last)) return;
    const std::size_t length = task_detail::length_of(first, last);
    auto body = [&f, first, cancel = options.cancel](std::size_t begin, std::size_t end) {
      task_detail::for_indices(begin, end, cancel, [&](std::size_t i) {
        std::invoke(f, static_cast<I>(static_cast<std::size_t>(first) + i));
      });
    };
    task_detail::for_all<std::remove_reference_t<F>>(length, options, body);
  }
}

// f(element) for each element of the range.
template <std::ranges::random_access_range R, class F>
void parallel_for(R&& range, F&& f, loop_options options = {}) {
  constexpr bool takes_element = std::is_invocable_v<F&, std::ranges::range_reference_t<R>>;
  static_assert(takes_element, "the body of this loop is called with an element");
  if constexpr (takes_element) {
    auto begin = std::ranges::begin(range);
    using Difference = std::iter_difference_t<decltype(begin)>;
    parallel_for(
        std::size_t{0}, static_cast<std::size_t>(std::ranges::distance(range)),
        [&](std::size_t i) { std::invoke(f, begin[static_cast<Difference>(i)]); }, options);
  }
}

// combine(…combine(identity, map(first))…, map(last - 1)), with brackets wherever they suit:
// combine must be associative, and need not be commutative. Cancelled, it is of those elements that
// were reached.
template <std::integral I, class T, class Map, class Combine>
T parallel_reduce(I first, I last, T identity, Map&& map, Combine&& combine,
                  loop_options options = {}) {
  constexpr bool maps = std::is_invocable_v<Map&, I>;
  static_assert(maps, "map is called with an index");
  if constexpr (maps) {
    using Mapped = std::invoke_result_t<Map&, I>;
    task_detail::check_reduction<T, Mapped, Combine>();
    if constexpr (task_detail::Reduces<T, Mapped, Combine>) {
      if (first < last) {
        auto at = [first](std::size_t i) {
          return static_cast<I>(static_cast<std::size_t>(first) + i);
        };
        return task_detail::reduce(task_detail::length_of(first, last), identity, at, map, combine,
                                   options);
      }
    }
  }
  return identity;
}

// The same over the elements of a range: map(element).
template <std::ranges::random_access_range R, class T, class Map, class Combine>
T parallel_reduce(R&& range, T identity, Map&& map, Combine&& combine, loop_options options = {}) {
  constexpr bool maps = std::is_invocable_v<Map&, std::ranges::range_reference_t<R>>;
  static_assert(maps, "map is called with an element");
  if constexpr (maps) {
    using Mapped = std::invoke_result_t<Map&, std::ranges::range_reference_t<R>>;
    task_detail::check_reduction<T, Mapped, Combine>();
    if constexpr (task_detail::Reduces<T, Mapped, Combine>) {
      auto begin = std::ranges::begin(range);
      using Difference = std::iter_difference_t<decltype(begin)>;
      auto at = [&](std::size_t i) -> decltype(auto) { return begin[static_cast<Difference>(i)]; };
      return task_detail::reduce(static_cast<std::size_t>(std::ranges::distance(range)), identity,
                                 at, map, combine, options);
    }
  }
  return identity;
}

namespace task_detail {

// Up to this many elements a sort is not worth a fork.
inline constexpr std::ptrdiff_t kSortGrain = 2048;

template <class Iterator, class Compare>
Iterator median(Iterator a, Iterator b, Iterator c, Compare& compare) {
  if (compare(*b, *a)) std::swap(a, b);
  if (!compare(*c, *b)) return b;
  return compare(*c, *a) ? a : c;
}

// Tukey's ninther (Bentley & McIlroy, "Engineering a Sort Function", 1993): also of a range with a
// pattern, such as one that rises and falls, near the middle.
template <class Iterator, class Compare>
Iterator ninther(Iterator first, Iterator last, Compare& compare) {
  const auto step = (last - first) / 8;
  const Iterator middle = first + 4 * step;
  return median(median(first, first + step, first + 2 * step, compare),
                median(middle - step, middle, middle + step, compare),
                median(last - 1 - 2 * step, last - 1 - step, last - 1, compare), compare);
}

// A step of quicksort: around its pivot, or, where that is equal to what stands before the range,
// so that it is the least of it and may have many equals, behind those, which need no sorting: an
// idea of Peters's ("Pattern-defeating Quicksort", 2021).
template <class Iterator>
struct Divided {
  Iterator at;
  bool by_equals;
};
// Bounded: something stands before the range, greater than nothing in it.
template <class Iterator, class Compare>
Divided<Iterator> divide(Iterator first, Iterator last, Compare& compare, bool bounded) {
  std::iter_swap(first, ninther(first, last, compare));
  if (bounded && !compare(*(first - 1), *first)) {
    return {std::partition(first + 1, last, [&](const auto& x) { return !compare(*first, x); }),
            true};
  }
  const Iterator cut =
      std::partition(first + 1, last, [&](const auto& x) { return compare(x, *first); }) - 1;
  std::iter_swap(first, cut);
  return {cut, false};
}

template <class Iterator, class Compare>
void sort_pieces(Iterator first, Iterator last, Compare& compare, int depth, bool bounded,
                 FirstThrown& thrown) {
  while (last - first > kSortGrain && depth > 0) {
    --depth;
    const Divided<Iterator> divided =
        part_of(thrown, [&] { return divide(first, last, compare, bounded); });
    if (!divided.by_equals) {
      const Iterator cut = divided.at;
      par([&, first, cut, depth,
           bounded] { sort_pieces(first, cut, compare, depth, bounded, thrown); },
          [&, cut, last, depth] { sort_pieces(cut + 1, last, compare, depth, true, thrown); });
      return;
    }
    first = divided.at;
  }
  part_of(thrown, [&] { std::sort(first, last, compare); });
}

template <class Iterator, class Compare>
void sort_in_worker(Iterator first, Iterator last, Compare& compare) {
  int depth = 8;
  for (auto length = last - first; length > 1; length /= 2) depth += 2;
  FirstThrown thrown;
  whole_of(thrown, [&] { sort_pieces(first, last, compare, depth, false, thrown); });
}

// What a sort has to be given. Where it is not, check_sort() says so, and nothing else is compiled
// that would. Elements are compared where they are, and as constant ones.
template <class Iterator, class Compare>
concept ComparesElements =
    requires(Compare& compare, std::iter_reference_t<Iterator> a,
             const std::remove_reference_t<std::iter_reference_t<Iterator>>& b) {
      static_cast<bool>(compare(a, a));
      static_cast<bool>(compare(a, b));
      static_cast<bool>(compare(b, a));
    };
template <class Iterator>
concept MovesElements =
    std::is_move_constructible_v<std::iter_value_t<Iterator>> &&
    std::is_assignable_v<std::iter_reference_t<Iterator>, std::iter_value_t<Iterator>>;
template <class Iterator, class Compare>
constexpr void check_sort() {
  static_assert(std::is_copy_constructible_v<Compare>,
                "the comparison is copied, as std::sort does it");
  static_assert(ComparesElements<Iterator, Compare>,
                "the comparison is called with two elements, and returns a bool");
  static_assert(MovesElements<Iterator>, "what is sorted is moved: it must be assignable");
}

template <class Iterator, class Compare>
void sort(Iterator first, Iterator last, Compare& compare) {
  if (last - first <= kSortGrain) return std::sort(first, last, compare);
  if (std::is_sorted(first, last, compare)) return;
  if (jd_task_in_worker() != 0) return sort_in_worker(first, last, compare);
  SortTimes& past = sort_times<Iterator, Compare>;
  const auto count = static_cast<std::int64_t>(last - first);
  const auto timed = [&](auto sort) {
    const std::int64_t began = now();
    sort();
    past.note(count, now() - began);
  };
  if (past.is_expected(count) && jd_task_may_run_here() != 0) {
    timed([&] { std::sort(first, last, compare); });
  } else {
    run([&] { timed([&] { sort_in_worker(first, last, compare); }); });
  }
}

}  // namespace task_detail

// std::sort, in parallel; not stable. To few elements, to what is sorted, and to what is expected
// to be short, the caller sees itself.
template <std::random_access_iterator Iterator, class Compare = std::less<>>
void parallel_sort(Iterator first, Iterator last, Compare compare = {}) {
  task_detail::check_sort<Iterator, Compare>();
  if constexpr (std::is_copy_constructible_v<Compare> &&
                task_detail::ComparesElements<Iterator, Compare> &&
                task_detail::MovesElements<Iterator>) {
    task_detail::sort(first, last, compare);
  }
}
template <std::ranges::random_access_range R, class Compare = std::less<>>
void parallel_sort(R&& range, Compare compare = {}) {
  const auto first = std::ranges::begin(range);
  parallel_sort(first, first + std::ranges::distance(range), std::move(compare));
}

}  // namespace JD_TASK_CODE
}  // namespace jd
