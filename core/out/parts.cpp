// SPDX-License-Identifier: Apache-2.0
#include "core/out/parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/cold/blocked_signal.h"

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

// Under another name first: who looks for the file must not see half of it.  Returns 0, or what is wrong.
int write_file(const std::string& name, const std::vector<char>& bytes) {
  const std::string unfinished = name + ".new";
  const int descriptor = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int failure = descriptor >= 0 && write_all(descriptor, bytes) ? 0 : errno;
  if (descriptor >= 0 && close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && rename(unfinished.c_str(), name.c_str()) != 0) failure = errno;
  if (failure != 0) unlink(unfinished.c_str());
  return failure;
}

// Empty when it cannot be read.
std::vector<char> read_file(const std::string& name) {
  std::vector<char> bytes;
  const int descriptor = open(name.c_str(), O_RDONLY | O_CLOEXEC);
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
  const BlockedSignal file_size_limit(SIGXFSZ);
  mkdir(directory_.c_str(), 0777);
  const std::string name = file(rank);
  const int failure = write_file(name, bytes);
  if (failure == 0) return true;
  error = name + ": " + std::strerror(failure);
  // An empty one takes no room, and without it the others would wait for this rank for ever.
  const int empty = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (empty >= 0) close(empty);
  rmdir(directory_.c_str());  // where not even that is possible, and nobody else was
  return false;
}

std::vector<char> Parts::get(int rank) const { return read_file(file(rank)); }

void Parts::put_orders(const std::vector<char>& bytes) {
  const BlockedSignal file_size_limit(SIGXFSZ);
  mkdir(directory_.c_str(), 0777);
  write_file(orders_file(), bytes);
}

std::vector<char> Parts::orders() const { return read_file(orders_file()); }

bool Parts::claim(int ranks) {
  // From the end: where ranks end in order the first look tells.
  for (int rank = ranks - 1; rank >= 0; --rank) {
    struct stat facts;
    if (stat(file(rank).c_str(), &facts) != 0 || facts.st_mtime < oldest_) return false;
  }
  const std::string mark = directory_ + "/claimed";
  const int descriptor = open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0 || errno != EEXIST;  // no room for it: better two profiles than none
}

void Parts::remove(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) unlink(file(rank).c_str());
  unlink(orders_file().c_str());
  unlink((directory_ + "/claimed").c_str());
  rmdir(directory_.c_str());
}

}  // namespace commlens::out
