#include "interleaving.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <ostream>
#include <vector>

namespace jd::test {
namespace {

using Threads = std::uint32_t;  // a bit each
constexpr Threads bit(unsigned thread) { return Threads{1} << thread; }

struct Step {
  const void* place = nullptr;
  Access access = Access::Local;

  // May two steps of different threads change places?
  [[nodiscard]] bool independent_of(const Step& other) const {
    if (access == Access::Local || other.access == Access::Local || place != other.place) {
      return true;
    }
    return access == Access::Read && other.access == Access::Read;
  }
  // Can no step that another thread may make before it depend on it? Then nothing is lost by making
  // it at once. (A lock's holder lets it go: until then others can't do anything with it.)
  [[nodiscard]] bool may_come_first() const {
    return access == Access::Local || access == Access::Release;
  }
};

constexpr std::size_t kStackBytes = 256 * 1024;

// Where somebody goes on: a stack with its registers.
struct Place {
  ucontext_t context{};  // before the first step
  jmp_buf jump{};        // from then on
  bool started = false;
};

// Noinline: the compiler then knows what a second return may find changed.
[[gnu::noinline]] void change_places(Place* from, Place* to) {
#if defined(JD_SANITIZE_ADDRESS)
  // AddressSanitizer understands this, but not jumps from one stack to another.
  swapcontext(&from->context, &to->context);
#else
  // Not swapcontext, which calls the system twice to keep the signal mask.
  if (_setjmp(from->jump) != 0) return;
  if (to->started) _longjmp(to->jump, 1);
  to->started = true;
  setcontext(&to->context);
#endif
}

struct Thread {
  enum class State { Ready, Asleep, Ended };

  std::function<void()> body;
  bool server = false;
  State state = State::Ready;
  Step next;  // what it does when its turn comes
  const void* asleep_on = nullptr;
  bool timed = false;
  bool woken = false;
  Place place;
};

// A point at which a choice was made.
struct Choice {
  unsigned chosen;
  Threads possible;
  Threads sleeping;  // not to be tried: an order that was tried already does the same
  unsigned before;   // who made the step before
  int preemptions;   // until then
};

class Explorer final : public Program {
 public:
  explicit Explorer(const Limits& limits) : limits_(limits) {}

  Report run(const std::function<void(Program*)>& make) {
    bool more = true;
    while (more && report_.failure.empty() && report_.executions < limits_.executions) {
      reset();
      make(this);
      execute();
      more = next_schedule();
    }
    report_.complete = !more;
    return report_;
  }

  void add_thread(std::function<void()> body) override { add(std::move(body), false); }
  void add_server(std::function<void()> body) override { add(std::move(body), true); }
  void at_end(std::function<void()> check) override { at_end_ = std::move(check); }

  void step(const Step& next) {
    if (running_ == kNobody) return;
    threads_[running_].next = next;
    to_scheduler();
  }
  bool sleep_on(const void* place, bool for_ever) {
    Thread& thread = threads_[running_];
    thread.state = Thread::State::Asleep;
    thread.asleep_on = place;
    thread.timed = !for_ever;
    thread.next = {};
    asleep_.push_back(running_);
    to_scheduler();
    return thread.woken;
  }
  int wake(const void* place, int count) {
    int woken = 0;
    for (auto sleeper = asleep_.begin(); sleeper != asleep_.end() && woken < count;) {
      if (threads_[*sleeper].asleep_on != place) {
        ++sleeper;
        continue;
      }
      rouse(*sleeper, true);
      sleeper = asleep_.erase(sleeper);
      ++woken;
    }
    return woken;
  }
  void fail(const char* what) {
    if (report_.failure.empty()) report_.failure = what;
    if (running_ == kNobody) return;
    threads_[running_].state = Thread::State::Ended;
    to_scheduler();
  }
  [[nodiscard]] unsigned running() const { return running_; }

 private:
  static constexpr unsigned kNobody = ~0u;

  void add(std::function<void()> body, bool server) {
    threads_.emplace_back();
    threads_.back().body = std::move(body);
    threads_.back().server = server;
    while (stacks_.size() < threads_.size()) {
      stacks_.push_back(std::make_unique<char[]>(kStackBytes));
    }
  }

  void reset() {
    threads_.clear();
    asleep_.clear();
    at_end_ = nullptr;
    depth_ = 0;
    Scheduled::time = 0;
    for (std::uint64_t& waits : Scheduled::waits) waits = 0;
  }

  void to_scheduler() { change_places(&threads_[running_].place, &scheduler_); }
  void to_thread(unsigned number) {
    running_ = number;
    scheduler_.started = true;
    change_places(&scheduler_, &threads_[number].place);
    running_ = kNobody;
  }

  static void body(int low, int high) {
    const auto address = static_cast<std::uint64_t>(static_cast<std::uint32_t>(low)) |
                         static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32;
    auto* self = reinterpret_cast<Explorer*>(address);
    self->threads_[self->running_].body();
    self->threads_[self->running_].state = Thread::State::Ended;
    self->to_scheduler();
  }

  // Apart, since the compiler takes it for a function that may return twice, as setjmp does.
  [[gnu::noinline]] static void fill(ucontext_t* context) { getcontext(context); }

  void start(unsigned number) {
    ucontext_t& context = threads_[number].place.context;
    fill(&context);
    context.uc_stack.ss_sp = stacks_[number].get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uint64_t>(this);
    makecontext(&context, reinterpret_cast<void (*)()>(body), 2, static_cast<int>(self),
                static_cast<int>(self >> 32));
  }

  void rouse(unsigned number, bool woken) {
    threads_[number].state = Thread::State::Ready;
    threads_[number].woken = woken;
  }

  [[nodiscard]] bool can_go_on(const Thread& thread) const {
    if (thread.state != Thread::State::Ready) return false;
    return thread.next.access != Access::Acquire ||
           !static_cast<const Scheduled::Lock*>(thread.next.place)->held();
  }

  [[nodiscard]] Threads possible() const {
    Threads all = 0;
    for (unsigned t = 0; t < threads_.size(); ++t) {
      if (can_go_on(threads_[t])) all |= bit(t);
    }
    for (unsigned t = 0; t < threads_.size(); ++t) {
      if ((all & bit(t)) != 0 && threads_[t].next.may_come_first()) return bit(t);
    }
    return all;
  }

  [[nodiscard]] bool has_ended() const {
    return std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) {
      return thread.server || thread.state == Thread::State::Ended;
    });
  }

  // True if somebody's time is up.
  bool let_time_pass() {
    for (auto sleeper = asleep_.begin(); sleeper != asleep_.end(); ++sleeper) {
      if (!threads_[*sleeper].timed) continue;
      rouse(*sleeper, false);
      asleep_.erase(sleeper);
      ++report_.timeouts;
      return true;
    }
    return false;
  }

  // The threads that may make the next step at a choice.
  [[nodiscard]] Threads candidates(const Choice& choice) const {
    const Threads left = choice.possible & ~choice.sleeping;
    if (limits_.preemptions < 0 || choice.before == kNobody) return left;
    const bool preempts = (choice.possible & bit(choice.before)) != 0;
    return preempts && choice.preemptions >= limits_.preemptions ? left & bit(choice.before) : left;
  }

  static unsigned pick(const Choice& choice, Threads among) {
    if (choice.before != kNobody && (among & bit(choice.before)) != 0) return choice.before;
    return static_cast<unsigned>(__builtin_ctz(among));
  }

  void execute() {
    for (unsigned t = 0; t < threads_.size(); ++t) start(t);
    Threads sleeping = 0;
    unsigned before = kNobody;
    int preemptions = 0;
    while (report_.failure.empty()) {
      const Threads now = possible();
      if (now == 0) {
        if (has_ended()) {
          if (at_end_) at_end_();
          ++report_.executions;
        } else if (let_time_pass()) {
          continue;
        } else {
          report_.failure = "nobody can go on";
        }
        break;
      }
      if (depth_ == choices_.size()) {
        Choice choice{kNobody, now, sleeping, before, preemptions};
        const Threads among = candidates(choice);
        if (among == 0) break;
        choice.chosen = pick(choice, among);
        choices_.push_back(choice);
      }
      const Choice& choice = choices_[depth_++];
      const unsigned turn = choice.chosen;
      sleeping = 0;
      if (limits_.preemptions < 0) {
        for (unsigned t = 0; t < threads_.size(); ++t) {
          if ((choice.sleeping & bit(t)) != 0 &&
              threads_[t].next.independent_of(threads_[turn].next)) {
            sleeping |= bit(t);
          }
        }
      }
      if (before != kNobody && turn != before && (now & bit(before)) != 0) ++preemptions;
      before = turn;
      ++report_.steps;
      to_thread(turn);
    }
    report_.cut += report_.failure.empty() && possible() != 0 ? 1 : 0;
    report_.longest = std::max<std::uint64_t>(report_.longest, depth_);
    if (!report_.failure.empty()) {
      report_.failure += "; schedule";
      for (std::size_t i = 0; i < depth_; ++i) {
        report_.failure += ' ' + std::to_string(choices_[i].chosen);
      }
    }
  }

  // Changes the last choice at which there is another way. False if there is none.
  bool next_schedule() {
    while (!choices_.empty()) {
      Choice& last = choices_.back();
      last.sleeping |= bit(last.chosen);
      if (const Threads among = candidates(last); among != 0) {
        last.chosen = pick(last, among);
        return true;
      }
      choices_.pop_back();
    }
    return false;
  }

  Limits limits_;
  Report report_;
  // A deque, because contexts must not move.
  std::deque<Thread> threads_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::deque<unsigned> asleep_;  // in the order in which they went to sleep
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::function<void()> at_end_;
  unsigned running_ = kNobody;
  Place scheduler_;
};

Explorer* explorer = nullptr;

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Report& report) {
  stream << report.executions << " executions and " << report.cut << " begun, " << report.steps
         << " steps, the longest " << report.longest << ", timeouts " << report.timeouts;
  if (!report.complete) stream << ", not all";
  if (!report.failure.empty()) stream << "; failure: " << report.failure;
  return stream;
}

Report explore(const Limits& limits, const std::function<void(Program*)>& make) {
  Explorer one(limits);
  explorer = &one;
  Report report = one.run(make);
  explorer = nullptr;
  return report;
}

void check(bool condition, const char* what) {
  if (!condition) explorer->fail(what);
}

unsigned running_thread() { return explorer->running(); }

namespace detail {

void step(const void* place, Access access) {
  if (explorer != nullptr) explorer->step({place, access});
}
bool sleep_on(const void* place, bool for_ever) { return explorer->sleep_on(place, for_ever); }
int wake(const void* place, int count) { return explorer->wake(place, count); }

}  // namespace detail
}  // namespace jd::test
