// SPDX-License-Identifier: Apache-2.0
#include "core/base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace commlens {
namespace {

constexpr mode_t by_others = S_IWGRP | S_IWOTH;

// True when a file that this process creates in the folder gets the same owner, and is no less writable by others.  For
// file servers that map users to others, as NFS does with root, and for file systems without permissions.
bool is_like_own_file(int folder, const struct stat& facts) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  char name[64];
  std::snprintf(name, sizeof name, ".commlens-owner-%ld-%ld", static_cast<long>(getpid()), now.tv_nsec);
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  struct stat own;
  const bool is_like =
      fstat(file, &own) == 0 && facts.st_uid == own.st_uid && (facts.st_mode & ~own.st_mode & by_others) == 0;
  unlinkat(folder, name, 0);
  close(file);
  return is_like;
}

bool is_private(int folder, const struct stat& facts) noexcept {
  return (facts.st_uid == geteuid() && (facts.st_mode & by_others) == 0) || is_like_own_file(folder, facts);
}

}  // namespace

PrivateFolder PrivateFolder::open(const char* path) noexcept {
  // O_PATH needs no read permission: a folder of another user must be recognised as such.
  const int descriptor = ::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct stat facts;
  const bool is_known = fstat(descriptor, &facts) == 0;
  if (is_known && is_private(descriptor, facts)) return PrivateFolder(descriptor);
  const int error = is_known ? EPERM : errno;
  close(descriptor);
  errno = error;
  return {};
}

PrivateFolder PrivateFolder::make(const char* path, unsigned mode) noexcept {
  if (mkdir(path, mode) != 0 && errno != EEXIST) return {};
  return open(path);
}

PrivateFolder::~PrivateFolder() {
  if (descriptor_ < 0) return;
  const int saved = errno;
  close(descriptor_);
  errno = saved;
}

bool make_parents(const char* path, std::size_t root, const char* root_path, unsigned mode) noexcept {
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  int around = ::open(root_path, flags);
  const char* slash = nullptr;
  for (const char* part = path + root; around >= 0 && (slash = std::strchr(part, '/')) != nullptr; part = slash + 1) {
    char name[NAME_MAX + 1];
    const auto length = static_cast<std::size_t>(slash - part);
    if (length == 0) continue;
    struct stat outer, inner;
    int folder = -1;
    if (length >= sizeof name) {
      errno = ENAMETOOLONG;
    } else {
      std::memcpy(name, part, length);
      name[length] = '\0';
      mkdirat(around, name, mode);  // whether it is there now shows next
      folder = openat(around, name, flags);
    }
    if (folder >= 0 && (fstat(around, &outer) != 0 || fstat(folder, &inner) != 0 ||
                        (inner.st_uid != geteuid() && inner.st_uid != 0 && (outer.st_mode & by_others) != 0))) {
      close(folder);
      folder = -1;
      errno = EPERM;
    }
    const int error = errno;
    close(around);
    errno = error;
    around = folder;
  }
  if (around >= 0) close(around);
  return around >= 0;
}

const char* folder_error(int error) noexcept {
  if (error == EPERM) return "the folder belongs to another user, or others may write to it";
  if (error == ENOTDIR) return "it is a symbolic link, or not a folder";
  return std::strerror(error);
}

int create_anew(int folder, const char* name, unsigned mode) noexcept {
  if (unlinkat(folder, name, 0) != 0 && errno != ENOENT) return -1;
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

}  // namespace commlens
