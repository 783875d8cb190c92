// SPDX-License-Identifier: Apache-2.0
#include "core/base/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/null_device.h"

namespace commlens {
namespace {

bool is_standard_input(const struct stat& facts) noexcept {
  struct stat input;
  return fstat(STDIN_FILENO, &input) == 0 && input.st_dev == facts.st_dev && input.st_ino == facts.st_ino;
}

// Returns why the file cannot be a configuration; empty: it can.
std::string unfit(const struct stat& facts) {
  if (S_ISDIR(facts.st_mode)) return "it is a directory";
  if (S_ISFIFO(facts.st_mode)) return "it is a FIFO, not a regular file";
  if (!S_ISREG(facts.st_mode)) return "it is not a regular file";
  if (is_standard_input(facts)) return "it is the standard input";
  if (facts.st_size > static_cast<off_t>(most_config_bytes)) return "it is larger than 64 KiB";
  return {};
}

// Reads `bytes` bytes, the size in the file's metadata.  Files in /proc have size 0 and are therefore not read: reading
// some of them blocks, or consumes their content.
std::string content(int descriptor, std::size_t bytes, int& error) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(descriptor, &text[done], bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace

ConfigFile read_config(const std::string& path) {
  ConfigFile file;
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) {
    file.is_absent = errno == ENOENT || errno == ENOTDIR;
    file.problem = std::strerror(errno);
    return file;
  }
  if (is_null_device(facts)) return file;
  file.problem = unfit(facts);
  if (!file.problem.empty()) return file;
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) {
    file.problem = std::strerror(errno);
    return file;
  }
  int error = fstat(descriptor, &facts) == 0 ? 0 : errno;
  if (error == 0) file.problem = unfit(facts);  // another file may have taken its place since stat()
  if (error == 0 && file.problem.empty()) {
    file.text = content(descriptor, static_cast<std::size_t>(facts.st_size), error);
  }
  close(descriptor);
  if (error != 0) file = {{}, std::strerror(error), false};
  return file;
}

std::string excerpt(const std::string& text) {
  constexpr std::size_t most = 60;
  std::string shown = text.substr(0, most);
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace commlens
