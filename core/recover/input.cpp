// SPDX-License-Identifier: Apache-2.0
#include "core/recover/input.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace commlens::arena {
namespace {

// Opens a file for reading.  Never follows a symbolic link as the last part of the path, because another user may have
// put it there.  Does not wait for the other end of a FIFO.
int open_own(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const int directory = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  const int file = openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const int error = errno;
  close(directory);
  errno = error;
  return file;
}

// Returns why a file must not be trusted; empty if it may be.
std::string doubt_about(const struct stat& facts) {
  if (!S_ISREG(facts.st_mode)) return "not a regular file";
  if (facts.st_uid != geteuid()) return "belongs to another user (uid " + std::to_string(facts.st_uid) + ")";
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return {};
}

}  // namespace

std::uint64_t Content::data_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [first, end] : data) sum += end - first;
  return sum;
}

std::uint64_t Content::next_data(std::uint64_t at) const {
  const auto next = std::upper_bound(data.begin(), data.end(), at,
                                     [](std::uint64_t place, const auto& extent) { return place < extent.second; });
  return next == data.end() ? size : std::max(at, next->first);
}

void Input::unload() {
  if (file_ >= 0) close(file_);
  file_ = -1;
  if (bytes_ != nullptr) munmap(bytes_, reserved_);
  bytes_ = nullptr;
  content_ = {};
}

bool Input::open(const std::string& path) {
  file_ = open_own(path);
  if (file_ < 0) {
    error = errno == ELOOP ? "a symbolic link" : errno == ENXIO ? "not a regular file" : std::strerror(errno);
    return false;
  }
  struct stat facts;
  if (fstat(file_, &facts) != 0) {
    error = std::strerror(errno);
    return false;
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  error = doubt_about(facts);
  is_own_ = S_ISREG(facts.st_mode) && facts.st_uid == geteuid();
  if (!error.empty()) return false;
  size_ = static_cast<std::uint64_t>(facts.st_size);
  struct statfs place;
  is_in_memory_ = fstatfs(file_, &place) == 0 && place.f_type == TMPFS_MAGIC;
  return true;
}

std::size_t Input::read_at(char* to, std::size_t bytes, std::uint64_t at) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(file_, to + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::uint64_t Input::first_hole() const {
  const off_t hole = lseek(file_, 0, SEEK_HOLE);
  return hole < 0 ? size_ : std::min(static_cast<std::uint64_t>(hole), size_);
}

// Reads, and does not map, because access to a mapped page of a file that is truncated meanwhile would kill this
// process.
bool Input::load_data(std::uint64_t from, std::uint64_t to) {
  const std::size_t n = read_at(bytes_ + from, to - from, from);
  if (n != 0) content_.data.emplace_back(from, from + n);
  content_.size = from + n;
  return n == to - from;
}

bool Input::load(std::uint64_t bytes) {
  if (bytes == 0) return true;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // Without huge pages, a page of data between holes does not take two megabytes.
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  bytes_ = static_cast<char*>(memory);
  content_.bytes = bytes_;
  reserved_ = bytes;
  for (std::uint64_t at = 0; at < bytes;) {
    const off_t data = lseek(file_, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    if (data < 0) {                         // a file system without support for holes
      load_data(at, bytes);
      return true;
    }
    const off_t hole = lseek(file_, data, SEEK_HOLE);
    const std::uint64_t from = std::min(static_cast<std::uint64_t>(data), bytes);
    const std::uint64_t to = hole <= data ? bytes : std::min(static_cast<std::uint64_t>(hole), bytes);
    if (!load_data(from, to)) return true;
    at = to;
  }
  content_.size = bytes;
  return true;
}

}  // namespace commlens::arena
