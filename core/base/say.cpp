// SPDX-License-Identifier: Apache-2.0
#include "core/base/say.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/base/blocked_signal.h"
#include "core/base/privileged.h"
#include "generated/launchers.h"

namespace commlens {

namespace {

struct stat stderr_then;
bool is_remembered = false;
bool was_closed = false;

// Returns the length of the UTF-8 sequence at `at`.  Returns 0 for characters that a terminal interprets instead of
// showing: control characters, marks of writing direction, and bytes that are not UTF-8.
std::size_t shown_length(const unsigned char* at) noexcept {
  if (*at < 0x80) return *at >= ' ' && *at != 0x7f ? 1 : 0;
  const std::size_t length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
  constexpr unsigned smallest[] = {0x80, 0x800, 0x10000};
  unsigned code = *at & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (at[i] & 0x3fu);
  }
  const bool is_control = code < 0xa0 || code == 0x61c || code == 0xfeff || (code >= 0x200b && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f);
  return *at < 0xc2 || *at > 0xf4 || code < smallest[length - 2] || is_control ? 0 : length;
}

// Replaces characters that a terminal interprets by '?'.  Names and values in a message are not trusted.
void make_safe(char* text) noexcept {
  for (std::size_t length; *text != '\0'; text += length) {
    length = shown_length(reinterpret_cast<unsigned char*>(text));
    if (length != 0) continue;
    *text = '?';
    length = 1;
  }
}

// False in a privileged process, which never prints anything, and when stderr is closed or another file by now.
bool may_speak() noexcept {
  struct stat now;
  if (commlens_is_privileged()) return false;
  if (!is_remembered) return !was_closed;
  return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == stderr_then.st_dev && now.st_ino == stderr_then.st_ino;
}

}  // namespace

void remember_stderr() noexcept {
  const int saved = errno;
  is_remembered = fstat(STDERR_FILENO, &stderr_then) == 0;
  was_closed = !is_remembered;
  errno = saved;
}

void say(const char* format, ...) noexcept {
  const int saved = errno;
  char line[2048] = "commlens: ";
  const std::size_t prefix = std::strlen(line);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
  va_end(arguments);
  make_safe(line + prefix);
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  say_lines(line, length + 1);
  errno = saved;
}

void say_lines(const char* lines, std::size_t bytes) noexcept {
  const int saved = errno;
  if (may_speak()) {
    const BlockedSignal broken_pipe(SIGPIPE);
    const ssize_t written = write(STDERR_FILENO, lines, bytes);
    static_cast<void>(written);  // a failure cannot be reported anywhere
  }
  errno = saved;
}

int launcher_rank() noexcept {
  for (const char* name : COMMLENS_VARIABLES_RANK) {
    const char* const text = std::getenv(name);
    if (text != nullptr && *text >= '0' && *text <= '9') return std::atoi(text);
  }
  return -1;
}

}  // namespace commlens
