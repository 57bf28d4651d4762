// main() of the tests of the public interface. Children come first: what they test may have to
// happen before GC_INIT().
#include <gtest/gtest.h>

#include "child.hpp"
#include "gc_test.hpp"

int main(int argc, char** argv) {
  const int child_status = jd::test::run_as_child();
  if (child_status >= 0) return child_status;
  testing::InitGoogleTest(&argc, argv);
  GC_INIT();
  GC_allow_register_threads();
  return RUN_ALL_TESTS();
}
