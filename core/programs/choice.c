// SPDX-License-Identifier: Apache-2.0
#include "core/programs/choice.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct family families[family_count] = COMMLENS_FAMILIES;
const char our_library[] = "libcommlens.so";
const char caliper_adapter[] = "libcommlens-caliper.so";
const char separators[] = ": ";

const struct family* family_of_library(const char* file_name) {
  for (int f = 0; f < family_count; ++f) {
    for (const char* const* library = families[f].libraries; *library != NULL; ++library) {
      if (strncmp(file_name, *library, strlen(*library)) == 0) return &families[f];
    }
  }
  return NULL;
}

const struct family* family_called(const char* name) {
  for (int f = 0; f < family_count; ++f) {
    if (strcmp(name, families[f].name) == 0) return &families[f];
  }
  return NULL;
}

const struct family* family_of_launcher(void) {
  static const struct {
    const char *variable, *family;
  } signs[] = COMMLENS_LAUNCHER_VARIABLES;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i) {
    if (getenv(signs[i].variable) != NULL) return family_called(signs[i].family);
  }
  return NULL;
}

bool is_switched_off(void) {
  static const char* const no[] = {"0", "off", "no", "false"};
  const char* const enabled = getenv("COMMLENS_ENABLE");
  for (size_t i = 0; enabled != NULL && i < sizeof no / sizeof *no; ++i) {
    if (strcmp(enabled, no[i]) == 0) return true;
  }
  return false;
}

bool may_speak(void) {
  static const char* const names[] = COMMLENS_VARIABLES_RANK;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* const text = getenv(names[i]);
    if (text != NULL) return strcmp(text, "0") == 0;
  }
  return true;
}

// If nobody reads stderr any more, SIGPIPE must not kill this process.  It must not be ignored either, because the
// program would inherit that.
void say(const char* format, ...) {
  sigset_t broken_pipe, before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigprocmask(SIG_BLOCK, &broken_pipe, &before);
  va_list arguments;
  va_start(arguments, format);
  char line[PATH_MAX + 512];
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "commlens: %s\n", line);
  const struct timespec at_once = {0, 0};
  sigtimedwait(&broken_pipe, NULL, &at_once);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

bool is_called(const char* path, size_t length, const char* name) {
  const size_t n = strlen(name);
  return length >= n && strncmp(path + length - n, name, n) == 0 && (length == n || path[length - n - 1] == '/');
}

bool is_asan(const char* path, size_t length) {
  const char* name = path + length;
  while (name > path && name[-1] != '/') --name;
  return strncmp(name, "libasan.so", 10) == 0 || strncmp(name, "libclang_rt.asan", 16) == 0;
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

// Appends entries of `others` to `list`: those that must come before the profiler, or the rest.  Leaves out commlens
// itself.
static void add_others(char* list, const char* others, bool before) {
  while (*others != '\0') {
    const size_t length = strcspn(others, separators);
    if (length > 0 && !is_ours(others, length) && goes_before_us(others, length) == before) {
      if (*list != '\0') strcat(list, ":");
      strncat(list, others, length);
    }
    others += length + (others[length] != '\0');
  }
}

char* preload_list(const char* library, const char* adapter, const char* others) {
  if (others == NULL) others = "";
  char* const list = calloc(strlen(library) + strlen(adapter) + strlen(others) + 4, 1);
  if (list == NULL) return NULL;
  add_others(list, others, true);
  if (*list != '\0') strcat(list, ":");
  strcat(list, library);
  if (*adapter != '\0') strcat(strcat(list, ":"), adapter);
  add_others(list, others, false);
  return list;
}
