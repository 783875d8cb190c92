// SPDX-License-Identifier: Apache-2.0
// The sanitizers replace functions of libc, and may not have begun.  So nothing here calls a function that they
// replace: texts are compared by hand, and system calls are made directly.
#include "core/programs/sanitizers.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_options = 4096, most_variables = 8192 };

// Returns whether `text` begins with `beginning`.
static bool starts(const char* text, const char* beginning) {
  for (; *beginning != '\0'; ++text, ++beginning) {
    if (*text != *beginning) return false;
  }
  return true;
}

static bool has(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    if (starts(text, part)) return true;
  }
  return false;
}

// Executes this program again, with ASAN_OPTIONS=verify_asan_link_order=0 before the other options.  Returns only if
// that fails.
static void execute_accepted(char** arguments, char** variables, size_t at) {
  static char options[most_options] = "ASAN_OPTIONS=verify_asan_link_order=0";
  static char* changed[most_variables];
  size_t end = 0, count = 0;
  while (options[end] != '\0') ++end;
  if (variables[at] != NULL) {
    options[end++] = ':';
    for (const char* more = variables[at] + sizeof "ASAN_OPTIONS=" - 1; *more != '\0'; ++more) {
      if (end + 1 == sizeof options) return;
      options[end++] = *more;
    }
  }
  options[end] = '\0';
  for (size_t i = 0; variables[i] != NULL; ++i) {
    if (i == at) continue;
    if (count + 2 == most_variables) return;
    changed[count++] = variables[i];
  }
  changed[count] = options;
  static char path[PATH_MAX];
  const long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
  if (n > 0) syscall(SYS_execve, path, arguments, changed);
}

bool may_call_libc(char** arguments, char** variables) {
  for (const struct link_map* object = _r_debug.r_map; object != NULL; object = object->l_next) {
    const char* name = object->l_name;
    for (const char* c = name; *c != '\0'; ++c) {
      if (*c == '/') name = c + 1;
    }
    const bool is_address = starts(name, "libasan.so") || starts(name, "libclang_rt.asan");
    const bool is_other = starts(name, "libtsan.so") || starts(name, "libclang_rt.tsan") ||
                          starts(name, "libhwasan.so") || starts(name, "libclang_rt.hwasan");
    if (is_other) return false;
    if (!is_address) continue;
    size_t at = 0;
    while (variables[at] != NULL && !starts(variables[at], "ASAN_OPTIONS=")) ++at;
    if (variables[at] != NULL && has(variables[at], "verify_asan_link_order")) return true;
    execute_accepted(arguments, variables, at);
    return false;
  }
  return true;
}
