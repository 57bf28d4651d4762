// Tests that ask for what qemu-user can't do (docs/guide/building.md, "AArch64").
#pragma once

#include <gtest/gtest.h>

#if defined(JD_TEST_EMULATED)
#define JD_SKIP_IN_EMULATOR(why) GTEST_SKIP() << "the emulator " << why
#else
#define JD_SKIP_IN_EMULATOR(why) static_cast<void>(0)
#endif
