// SPDX-License-Identifier: Apache-2.0
#include "core/out/parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace commlens::out {
namespace {

constexpr std::time_t clocks_differ = 60;  // seconds, between a node and its file server

bool write_all(int file, const std::vector<char>& bytes) noexcept {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

Parts::Parts(const std::string& profile_name, Identity job, std::time_t began) : oldest_(began - clocks_differ) {
  char name[64];
  std::snprintf(name, sizeof name, ".commlens-%016llx", static_cast<unsigned long long>(job));
  const std::size_t slash = profile_name.rfind('/');
  directory_ = (slash == std::string::npos ? std::string() : profile_name.substr(0, slash + 1)) + name;
}

std::string Parts::file(int rank) const { return directory_ + "/rank" + std::to_string(rank); }

bool Parts::has_begun() const {
  struct stat facts;
  return stat(directory_.c_str(), &facts) == 0 && facts.st_mtime >= oldest_;
}

bool Parts::put(int rank, const std::vector<char>& bytes) {
  mkdir(directory_.c_str(), 0777);
  // Under another name first: who counts the files must not see half of one.
  const std::string name = file(rank), unfinished = name + ".new";
  const int descriptor = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool done = descriptor >= 0 && write_all(descriptor, bytes);
  int failure = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && done) {
    done = false;
    failure = errno;
  }
  if (done && rename(unfinished.c_str(), name.c_str()) != 0) {
    done = false;
    failure = errno;
  }
  if (!done) {
    unlink(unfinished.c_str());
    error = name + ": " + std::strerror(failure);
  }
  return done;
}

bool Parts::claim(int ranks) {
  // From the end: where ranks end in order the first look tells.
  for (int rank = ranks - 1; rank >= 0; --rank) {
    struct stat facts;
    if (stat(file(rank).c_str(), &facts) != 0 || facts.st_mtime < oldest_) return false;
  }
  const std::string mark = directory_ + "/claimed";
  const int descriptor = open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return false;
  close(descriptor);
  return true;
}

std::vector<char> Parts::get(int rank) const {
  std::vector<char> bytes;
  const int descriptor = open(file(rank).c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (descriptor >= 0 && fstat(descriptor, &facts) == 0) {
    bytes.resize(static_cast<std::size_t>(facts.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = read(descriptor, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    bytes.resize(done);
  }
  if (descriptor >= 0) close(descriptor);
  return bytes;
}

void Parts::remove(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) unlink(file(rank).c_str());
  unlink((directory_ + "/claimed").c_str());
  rmdir(directory_.c_str());
}

}  // namespace commlens::out
