// SPDX-License-Identifier: Apache-2.0
#include "core/programs/choice.h"

#include "core/programs/without_libc.h"

const struct family families[family_count] = COMMLENS_FAMILIES;
const char our_library[] = "libcommlens.so";
const char caliper_adapter[] = "libcommlens-caliper.so";
const char separators[] = ": ";
char** own_variables;

const char* value_of(const char* name) {
  const size_t length = length_of(name);
  for (char** variable = own_variables; *variable != NULL; ++variable) {
    if (begins_with(*variable, name) && (*variable)[length] == '=') return *variable + length + 1;
  }
  return NULL;
}

const struct family* family_of_library(const char* file_name) {
  for (int f = 0; f < family_count; ++f) {
    for (const char* const* library = families[f].libraries; *library != NULL; ++library) {
      if (begins_with(file_name, *library)) return &families[f];
    }
  }
  return NULL;
}

const struct family* family_called(const char* name) {
  for (int f = 0; f < family_count; ++f) {
    if (are_equal(name, families[f].name)) return &families[f];
  }
  return NULL;
}

const struct family* family_of_launcher(void) {
  static const struct {
    const char *variable, *family;
  } signs[] = COMMLENS_LAUNCHER_VARIABLES;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i) {
    if (value_of(signs[i].variable) != NULL) return family_called(signs[i].family);
  }
  return NULL;
}

bool is_switched_off(void) {
  static const char* const no[] = {"0", "off", "no", "false"};
  const char* const enabled = value_of("COMMLENS_ENABLE");
  for (size_t i = 0; enabled != NULL && i < sizeof no / sizeof *no; ++i) {
    if (are_equal(enabled, no[i])) return true;
  }
  return false;
}

bool may_speak(void) {
  static const char* const names[] = COMMLENS_VARIABLES_RANK;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* const text = value_of(names[i]);
    if (text != NULL) return are_equal(text, "0");
  }
  return true;
}

bool is_called(const char* path, size_t length, const char* name) {
  const size_t n = length_of(name);
  return length >= n && begins_with(path + length - n, name) && (length == n || path[length - n - 1] == '/');
}

bool is_asan(const char* path, size_t length) {
  const char* name = path + length;
  while (name > path && name[-1] != '/') --name;
  return begins_with(name, "libasan.so") || begins_with(name, "libclang_rt.asan");
}

// Returns whether a path of `length` characters names a library that commlens-run preloads.
static bool is_ours(const char* path, size_t length) {
  return is_called(path, length, our_library) || is_called(path, length, caliper_adapter);
}

// Returns whether a library must come before the profiler.  The address sanitizer must be the first library.  The
// stopwatch of `commlens overhead` must come before all libraries that it measures.
static bool goes_before_us(const char* path, size_t length) {
  return is_asan(path, length) || is_called(path, length, "libcommlens-stopwatch.so");
}

// Stores entries of `others`, each with a colon behind it: those that must come before the profiler, or the rest.
// Leaves out commlens itself.  Returns where the next entry goes.
static char* put_others(char* end, const char* others, bool before) {
  while (*others != '\0') {
    const size_t length = length_before(others, separators);
    if (length > 0 && !is_ours(others, length) && goes_before_us(others, length) == before) {
      end = put_text(put_part(end, others, length), ":");
    }
    others += length + (others[length] != '\0');
  }
  return end;
}

size_t preload_size(const char* library, const char* adapter, const char* others) {
  return length_of(library) + length_of(adapter) + (others == NULL ? 0 : length_of(others)) + 4;
}

void put_preload(char* list, const char* library, const char* adapter, const char* others) {
  if (others == NULL) others = "";
  char* end = put_others(list, others, true);
  end = put_text(put_text(end, library), ":");
  if (*adapter != '\0') end = put_text(put_text(end, adapter), ":");
  end = put_others(end, others, false);
  end[-1] = '\0';
}
