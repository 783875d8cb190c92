// SPDX-License-Identifier: Apache-2.0
// Texts and system calls for a constructor that runs before all others.  It must not call a function that another
// library or the program itself can replace, as sanitizers replace most of libc: what has replaced it has not begun.
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <errno.h>
#include <unistd.h>
#endif

// ---- texts ----

static inline size_t length_of(const char* text) {
  size_t n = 0;
  while (text[n] != '\0') ++n;
  return n;
}

// Returns whether `text` begins with `beginning`.
static inline bool begins_with(const char* text, const char* beginning) {
  for (; *beginning != '\0'; ++text, ++beginning) {
    if (*text != *beginning) return false;
  }
  return true;
}

static inline bool are_equal(const char* a, const char* b) { return begins_with(a, b) && a[length_of(b)] == '\0'; }

// Returns whether the first `length` characters of `text` contain `part`, which must not be empty.
static inline bool contains(const char* text, size_t length, const char* part) {
  const size_t n = length_of(part);
  for (size_t at = 0; at + n <= length; ++at) {
    if (begins_with(text + at, part)) return true;
  }
  return false;
}

static inline bool is_one_of(char c, const char* characters) {
  for (; *characters != '\0'; ++characters) {
    if (c == *characters) return true;
  }
  return false;
}

// Returns the number of characters before the first of `ends`, or before the end of the text.
static inline size_t length_before(const char* text, const char* ends) {
  size_t n = 0;
  while (text[n] != '\0' && !is_one_of(text[n], ends)) ++n;
  return n;
}

static inline const char* file_name(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

// Stores `length` characters of a text, without an end.  Returns where the next text goes.
static inline char* put_part(char* to, const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i) to[i] = text[i];
  return to + length;
}

static inline char* put_text(char* to, const char* text) { return put_part(to, text, length_of(text)); }

// ---- system calls: all return a negative number if they fail ----

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
  const int saved = errno;
  const long result = syscall(number, a, b, c, d, e, f);
  errno = saved;
  return result;
#endif
}

// Stores what a link points to.  Returns false if there is no such link, or if that has `size` characters or more.
static inline bool read_link(const char* path, char* target, size_t size) {
  const long n = system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)target, (long)size, 0, 0);
  if (n <= 0 || (size_t)n >= size) return false;
  target[n] = '\0';
  return true;
}

static inline bool get_status(const char* path, struct stat* status) {
  return system_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)status, 0, 0, 0) == 0;
}

static inline bool is_readable(const char* path) {
  return system_call(SYS_faccessat, AT_FDCWD, (long)path, 4 /* R_OK */, 0, 0, 0) == 0;
}

static inline int open_file(const char* path, int flags) {
  return (int)system_call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0, 0, 0);
}

static inline void close_file(int file) { system_call(SYS_close, file, 0, 0, 0, 0, 0); }

// Returns memory that is never freed, or NULL.
static inline void* get_memory(size_t size) {
  const long at = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at < 0 && at >= -4095 ? NULL : (void*)at;
}

static inline void free_memory(void* memory, size_t size) {
  system_call(SYS_munmap, (long)memory, (long)size, 0, 0, 0, 0);
}
