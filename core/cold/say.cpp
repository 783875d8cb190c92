// SPDX-License-Identifier: Apache-2.0
#include "core/cold/say.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/cold/blocked_signal.h"

namespace commlens {

namespace {

struct stat stderr_then;
bool is_remembered = false;
bool was_closed = false;

bool is_still_stderr() noexcept {
  struct stat now;
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
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  say_lines(line, length + 1);
  errno = saved;
}

void say_lines(const char* lines, std::size_t bytes) noexcept {
  const int saved = errno;
  if (is_still_stderr()) {
    const BlockedSignal broken_pipe(SIGPIPE);
    const ssize_t written = write(STDERR_FILENO, lines, bytes);
    static_cast<void>(written);  // nobody is left to tell
  }
  errno = saved;
}

int launcher_rank() noexcept {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "PALS_RANKID"}) {
    const char* const text = std::getenv(name);
    if (text != nullptr && *text >= '0' && *text <= '9') return std::atoi(text);
  }
  return -1;
}

}  // namespace commlens
