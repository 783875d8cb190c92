// SPDX-License-Identifier: Apache-2.0
// Programs that were built with a sanitizer, for libcommlens-any.so.
#pragma once

#include <stdbool.h>

// Returns whether a constructor that runs before all others may call functions of libc: the thread sanitizer replaces
// some, and has not begun.  In a program with the address sanitizer, which ends a program if another library is loaded
// before its own, executes the program again with an option that makes it accept this.
bool may_call_libc(char** arguments, char** variables);
