// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace commlens {

// An open folder that belongs to this user and that nobody else may write to.  Files in it are named relative to its
// descriptor, so that a folder that takes its place later is never used.  For signal handlers, too: no allocation.
class PrivateFolder {
 public:
  PrivateFolder() = default;
  // Opens an existing folder.  Invalid, with errno, when there is none, when it is a symbolic link (ENOTDIR), or when
  // it belongs to another user or others may write to it (EPERM).
  static PrivateFolder open(const char* path) noexcept;
  // The same; makes the folder with mode 0700 if it does not exist.
  static PrivateFolder make(const char* path) noexcept;

  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PrivateFolder& operator=(PrivateFolder&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }

 private:
  explicit PrivateFolder(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// What the errno of a refused folder means, in words for a person.
const char* folder_error(int error) noexcept;

// Creates a file for writing; one that is already there, such as the rest of an interrupted attempt, is removed first
// and never written to.  Returns a descriptor, or -1 with errno.
int create_anew(int folder, const char* name, unsigned mode) noexcept;

}  // namespace commlens
