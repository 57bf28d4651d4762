// Default options of the sanitizers for every test program, so that a test started by hand runs
// as it does under ctest. Weakly tied: without a sanitizer nobody calls these.
//
// detect_stack_use_after_return=0: a fake stack frame lives outside the thread's stack, where a
//   collector that scans stacks never looks; roots kept there would be missed.
// detect_leaks=0: LeakSanitizer does not know that the collector's heap keeps objects alive.
//
// There are no suppressions for ThreadSanitizer: what it reports is a race.

extern "C" {

__attribute__((used, visibility("default"))) const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:detect_leaks=0:abort_on_error=1";
}

__attribute__((used, visibility("default"))) const char* __ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}

__attribute__((used, visibility("default"))) const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1";
}

}  // extern "C"
