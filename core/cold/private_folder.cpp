// SPDX-License-Identifier: Apache-2.0
#include "core/cold/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace commlens {

PrivateFolder PrivateFolder::open(const char* path) noexcept {
  // O_PATH asks for no right to read: of a stranger's folder it must be known that it is one.
  const int descriptor = ::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct stat facts;
  const bool is_known = fstat(descriptor, &facts) == 0;
  if (is_known && facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return PrivateFolder(descriptor);
  }
  const int error = is_known ? EPERM : errno;
  close(descriptor);
  errno = error;
  return {};
}

PrivateFolder PrivateFolder::make(const char* path) noexcept {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return {};
  return open(path);
}

PrivateFolder::~PrivateFolder() {
  if (descriptor_ < 0) return;
  const int saved = errno;
  close(descriptor_);
  errno = saved;
}

const char* folder_error(int error) noexcept {
  if (error == EPERM) return "the folder belongs to another user, or others may write to it";
  if (error == ENOTDIR) return "it is a symbolic link, or no folder";
  return std::strerror(error);
}

int create_anew(int folder, const char* name, unsigned mode) noexcept {
  if (unlinkat(folder, name, 0) != 0 && errno != ENOENT) return -1;
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

}  // namespace commlens
