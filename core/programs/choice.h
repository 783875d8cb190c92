// SPDX-License-Identifier: Apache-2.0
// Which of our libraries a program needs, and how LD_PRELOAD names it: shared by commlens-run and libcommlens-any.so.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "generated/launchers.h"

// The families of MPI libraries for which commlens is built (spec/abi.toml).
struct family {
  const char* name;
  const char* title;
  const char* libraries[most_family_libraries];  // prefixes of the file names of its libraries; NULL ends them
};
extern const struct family families[family_count];

// The variables of this process, which end with NULL.  Set them first: a constructor that runs before all others cannot
// ask libc for them.
extern char** own_variables;
// Returns the value of a variable, or NULL.
const char* value_of(const char* name);

// All return NULL if there is no such family.
const struct family* family_of_library(const char* file_name);
const struct family* family_called(const char* name);
// Returns the family of the MPI library whose launcher started this process.  Needed for programs that load MPI later
// (Python, shell scripts, a library in between), whose file does not show it.
const struct family* family_of_launcher(void);

// Returns whether the environment switches commlens off (COMMLENS_ENABLE).
bool is_switched_off(void);

// Returns whether this process prints messages: rank 0 does, and every process if there is no launcher.
bool may_speak(void);

// The names of our libraries that are preloaded.
extern const char our_library[], caliper_adapter[];

// What separates the entries of LD_PRELOAD; the loader cannot escape it in a path.
extern const char separators[];

// Returns whether a path of `length` characters has this file name.
bool is_called(const char* path, size_t length, const char* name);

// Returns whether a path of `length` characters names the run-time library of gcc's or clang's address sanitizer.
bool is_asan(const char* path, size_t length);

// Stores a value for LD_PRELOAD: `library`, and `adapter` if that is not empty, before the entries of `others`, except
// for those that must come first.  Leaves out the libraries of commlens that are there.  others: may be NULL.  list:
// has preload_size() bytes.
size_t preload_size(const char* library, const char* adapter, const char* others);
void put_preload(char* list, const char* library, const char* adapter, const char* others);
