// Messages. Every line begins with "jackdaw: ", goes out in one write, and needs no memory, so it
// can be said from anywhere.
#pragma once

#include "base/text.hpp"

namespace jd::os {

// Where log lines go: standard error until a log file is opened. Warnings and errors always go to
// standard error as well.
void set_log_file(int file);
// Has them go to the file at the path, and reports too. Null, or why it can't be opened, for
// people. If the program closes the file's number and opens another file under it, that gets none
// of either.
[[nodiscard]] const char* open_log_and_report(const char* path);
// For what is written at the very end: programs close standard error before, or all files. Keeps
// the log under a number of our own, if it is standard error; and has it written, if that is not
// any more what it was, to standard error if that is, or to the file at the path (if it is
// absolute), or nowhere.
void keep_log();
void regain_log(const char* path);
// To be called when the runtime starts. If standard error is closed, it stays so for messages
// (os.req.closed-error): what the program opens later gets its number, and would get the messages.
void look_for_standard_error();
// Their numbers, or -1 where a file was closed.
int standard_error();
int log_file();
// Where reports that a program asks for go: standard output, or the file of GC_LOG_FILE. (As with
// bdwgc, not where GC_set_log_fd sends the log.)
int report_file();

// What is called, once, with a fatal message that was written, before abort(): the program's
// function for that. Any thread may set it.
void set_before_abort(void (*function)(const char* message));

void log_text(base::Text& line);
void warn_text(base::Text& line);
[[noreturn]] void fatal_text(base::Text& line);

// Never inlined: a line's buffer in a frame of the collector's would be a kilobyte of old stack
// words among the roots.

// One line into the log.
template <class... Parts>
[[gnu::noinline]] void log(Parts... parts) {
  base::Text line;
  line.add("jackdaw: ").add(parts..., "");
  log_text(line);
}
// One line on standard error.
template <class... Parts>
[[gnu::noinline, gnu::cold]] void warn(Parts... parts) {
  base::Text line;
  line.add("jackdaw: ").add(parts..., "");
  warn_text(line);
}
// One line on standard error, then abort().
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fatal(Parts... parts) {
  base::Text line;
  line.add("jackdaw: ").add(parts..., "");
  fatal_text(line);
}

}  // namespace jd::os

// An invariant that is cheap enough for release builds.
#define JD_CHECK(condition, what)                                                     \
  do {                                                                                \
    if (__builtin_expect(!(condition), 0)) ::jd::os::fatal("internal error: ", what); \
  } while (false)

// An invariant that only debug and sanitizer builds check.
#if defined(JD_DEBUG_CHECKS) && JD_DEBUG_CHECKS
#define JD_DCHECK(condition) JD_CHECK(condition, #condition)
#else
#define JD_DCHECK(condition) static_cast<void>(0)
#endif
