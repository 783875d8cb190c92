// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <utility>

namespace commlens {

// An open folder in which only this user can create, replace or delete files.  Files in it are named relative to its
// descriptor, so that a folder that takes its place later is never used.  Safe in signal handlers: no allocation.
class PrivateFolder {
 public:
  PrivateFolder() = default;
  // Opens an existing folder.  Returns an invalid object, with errno, when the folder does not exist, when it is a
  // symbolic link (ENOTDIR), or when it belongs to another user or others may write to it (EPERM).
  static PrivateFolder open(const char* path) noexcept;
  // The same, but creates the folder if it does not exist.
  static PrivateFolder make(const char* path, unsigned mode = 0700) noexcept;

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

// Creates the folders of `path` that begin behind its first `root` bytes, if they do not exist.  What follows the last
// slash is not created.  `root_path`: the folder of those bytes, which must exist.  Does not use a folder of another
// user in a folder to which others may write.  Safe in signal handlers.  Returns false, with errno, if it fails.
bool make_parents(const char* path, std::size_t root, const char* root_path, unsigned mode) noexcept;

// Returns what the errno of a refused folder means, as text for a message.
const char* folder_error(int error) noexcept;

// Creates a file for writing and returns its descriptor, or -1 with errno.  Removes a file of that name first, such as
// the rest of an interrupted attempt; never writes to it.
int create_anew(int folder, const char* name, unsigned mode) noexcept;

// Calls `attempt` again while it fails with ENOENT, at most 20 times; returns whether it succeeded.  For processes that
// make a folder and a file in it at the same time: one that finds no room for its file removes the empty folder,
// perhaps between these two steps of another.
template <typename Attempt>
bool succeeds_though_folder_vanishes(Attempt attempt) {
  constexpr int most_tries = 20;
  for (int tries = 1; !attempt(); ++tries) {
    if (errno != ENOENT || tries == most_tries) return false;
  }
  return true;
}

}  // namespace commlens
