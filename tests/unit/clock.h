// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/clock.h"

// The clock as a test wants it: until it is set it is the real one.  The linker puts it before clock_gettime()
// (--wrap, CMakeLists.txt), which is what the core reads without a time stamp counter.
namespace test_clock {

void set(commlens::Ticks now);
void go_on(commlens::Ticks by);
commlens::Ticks now();

}  // namespace test_clock
