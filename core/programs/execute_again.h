// SPDX-License-Identifier: Apache-2.0
// Executes the program of this process again, for libcommlens-any.so.
#pragma once

#include <limits.h>
#include <stdbool.h>

// The program of this process.
struct program {
  char file[PATH_MAX];  // where it lies; "/proc/self/exe" if it has been removed or replaced
  const char* path;     // executes it
};

// Returns false for a program that cannot be executed again: one that the dynamic linker or an emulator runs, whose
// name is not in its arguments.
bool find_program(struct program* program);

// Variables that the program is to have.  NULL: as they are.
struct changes {
  const char* preload;       // value of LD_PRELOAD
  const char* asan_options;  // goes before the options that the user has set
};

// Returns only if that fails.
void execute_again(const struct program* program, char** arguments, char** variables, struct changes changes);
