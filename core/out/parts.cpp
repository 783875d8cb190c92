// SPDX-License-Identifier: Apache-2.0
#include "core/out/parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/base/blocked_signal.h"
#include "core/base/private_folder.h"
#include "core/out/files.h"

namespace commlens::out {
namespace {

constexpr std::time_t clocks_differ = 60;  // seconds by which the clocks of a node and its file server may differ

bool write_all(int file, const std::vector<char>& bytes) noexcept {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return is_synced(file);
}

// Writes under another name first, so that no reader sees an incomplete file.  Returns 0 or an errno.
int write_file(int folder, const std::string& name, const std::vector<char>& bytes) {
  const std::string unfinished = name + ".new";
  const int descriptor = create_anew(folder, unfinished.c_str(), 0600);
  int failure = descriptor >= 0 && write_all(descriptor, bytes) ? 0 : errno;
  if (descriptor >= 0 && close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) failure = errno;
  if (failure != 0) unlinkat(folder, unfinished.c_str(), 0);
  return failure;
}

// Returns nothing if the file cannot be read as a whole or is no regular file.  Does not ask whose it is: nobody else
// can put a file into a private folder, and a file server may give files to another user than the one who wrote them.
std::optional<std::vector<char>> read_file(int folder, const std::string& name) {
  std::optional<std::vector<char>> bytes;
  const int descriptor = openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat facts;
  if (descriptor >= 0 && fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
    bytes.emplace(static_cast<std::size_t>(facts.st_size));
    for (std::size_t done = 0; bytes && done < bytes->size();) {
      const ssize_t n = read(descriptor, bytes->data() + done, bytes->size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) bytes.reset();
      done += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
  }
  if (descriptor >= 0) close(descriptor);
  return bytes;
}

std::string file(int rank) { return "rank" + std::to_string(rank) + ".part"; }

constexpr char orders_file[] = "orders", claim_file[] = "claimed";

}  // namespace

Parts::Parts(const std::string& profile_name, Identity job, std::time_t began)
    : profile_name_(profile_name), oldest_(began - clocks_differ) {
  char name[64];
  std::snprintf(name, sizeof name, ".commlens-%016llx", static_cast<unsigned long long>(job));
  const std::size_t slash = profile_name.rfind('/');
  directory_ = (slash == std::string::npos ? std::string() : profile_name.substr(0, slash + 1)) + name;
}

bool Parts::has_begun() const {
  const PrivateFolder folder = PrivateFolder::open(directory_.c_str());
  // Another user has taken the name.  A process that ended could not store its part, so nobody needs to wait for it.
  if (!folder) return errno == EPERM || errno == ENOTDIR;
  struct stat facts;
  return fstat(folder.descriptor(), &facts) == 0 && facts.st_mtime >= oldest_;
}

bool Parts::put(int rank, const std::vector<char>& bytes) {
  const BlockedSignal file_size_limit(SIGXFSZ);
  const std::string name = file(rank);
  PrivateFolder folder;
  const bool is_stored = succeeds_though_folder_vanishes([&] {
    folder = PrivateFolder::make(directory_.c_str());
    if (folder) errno = write_file(folder.descriptor(), name, bytes);
    return folder && errno == 0;
  });
  if (is_stored) return true;
  const int failure = errno;
  error = directory_ + "/" + name + ": " + (folder ? std::strerror(failure) : folder_error(failure));
  if (!folder) return false;
  // An empty file needs no space.  Without it the other processes would wait for this rank forever.
  const int empty = create_anew(folder.descriptor(), name.c_str(), 0600);
  if (empty >= 0) close(empty);
  rmdir(directory_.c_str());  // if even that failed; fails if another process has stored a file
  return false;
}

std::optional<std::vector<char>> Parts::get(int rank) const {
  const PrivateFolder folder = PrivateFolder::open(directory_.c_str());
  return folder ? read_file(folder.descriptor(), file(rank)) : std::nullopt;
}

void Parts::put_orders(const std::vector<char>& bytes) {
  const BlockedSignal file_size_limit(SIGXFSZ);
  const PrivateFolder folder = PrivateFolder::make(directory_.c_str());
  if (folder) write_file(folder.descriptor(), orders_file, bytes);
}

std::vector<char> Parts::orders() const {
  const PrivateFolder folder = PrivateFolder::open(directory_.c_str());
  return folder ? read_file(folder.descriptor(), orders_file).value_or(std::vector<char>()) : std::vector<char>();
}

bool Parts::claim(int ranks) {
  const PrivateFolder folder = PrivateFolder::open(directory_.c_str());
  if (!folder) return false;
  // Begins with the last rank: if ranks end in order, the first look decides.
  for (int rank = ranks - 1; rank >= 0; --rank) {
    struct stat facts;
    const bool is_there = fstatat(folder.descriptor(), file(rank).c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there || facts.st_mtime < oldest_) return false;
  }
  const auto create = [&folder] {
    return openat(folder.descriptor(), claim_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  };
  int descriptor = create();
  struct stat facts;
  const bool is_old = descriptor < 0 && errno == EEXIST &&
                      fstatat(folder.descriptor(), claim_file, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                      facts.st_mtime < oldest_;
  if (is_old) {  // of an earlier job that had the same number and could not write its profile
    unlinkat(folder.descriptor(), claim_file, 0);
    descriptor = create();
  }
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0 || errno != EEXIST;  // e.g. no space for it: two profiles are better than none
}

void Parts::remove(int ranks) {
  const PrivateFolder folder = PrivateFolder::open(directory_.c_str());
  if (!folder) return;
  for (int rank = 0; rank < ranks; ++rank) unlinkat(folder.descriptor(), file(rank).c_str(), 0);
  unlinkat(folder.descriptor(), orders_file, 0);
  unlinkat(folder.descriptor(), claim_file, 0);
  rmdir(directory_.c_str());
}

}  // namespace commlens::out
