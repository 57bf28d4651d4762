// main() of the tests of the public interface. Children come first: what they test may have to
// happen before GC_INIT().
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "child.hpp"
#include "gc_test.hpp"

namespace {

// Under a setting with partial collections a case would show nothing on a system that has none
// (Linux before 6.7; userfaultfd forbidden).
class NoneWithoutPartialCollections : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    GTEST_SKIP() << "this system has no partial collections (Linux 6.7 has them)";
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int child_status = jd::test::run_as_child();
  if (child_status >= 0) return child_status;
  testing::InitGoogleTest(&argc, argv);
  GC_INIT();
  GC_allow_register_threads();
  // As the variable has it; on the peer the mode is another.
  const char* const value = std::getenv("GC_ENABLE_INCREMENTAL");
  const bool is_asked_for = value != nullptr && std::strcmp(value, "0") != 0;
  if (is_asked_for && !jd::test::kPeer && GC_is_incremental_mode() == 0) {
    testing::UnitTest::GetInstance()->listeners().Append(new NoneWithoutPartialCollections);
  }
  return RUN_ALL_TESTS();
}
