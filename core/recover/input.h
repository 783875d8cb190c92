// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace commlens::arena {

// Bytes of a file in memory, aligned to a page.
struct Content {
  const char* bytes = nullptr;
  std::uint64_t size = 0;
  // The extents [first, end) of the file that are no holes, in order.  Holes read as zeros.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data;

  std::uint64_t data_bytes() const;
  // Returns the first position from `at` on that is not in a hole; `size` if there is none.
  std::uint64_t next_data(std::uint64_t at) const;
};

// A file that may be an arena or anything else.  It is opened once, and rejected unless it belongs to the calling user.
// All reads use that one descriptor, so that nobody can exchange the file in between.
class Input {
 public:
  Input() = default;
  ~Input() { unload(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Returns false and sets `error` if the file cannot be opened or must not be trusted.  Only a regular file is
  // trusted, if it belongs to this user and others may not write to it.
  bool open(const std::string& path);

  // Reads up to `bytes` bytes from offset `at` on.  Returns how many it read.
  std::size_t read_at(char* to, std::size_t bytes, std::uint64_t at) const;

  // Returns where the bytes that are stored end for the first time: at the first hole, or at the end of the file.
  std::uint64_t first_hole() const;

  // Loads the first `bytes` bytes into memory, aligned to a page.  Holes of the file read as zeros and take no memory.
  bool load(std::uint64_t bytes);
  // Releases memory and descriptor.  The facts about the file stay.
  void unload();
  const Content& content() const { return content_; }  // shorter than requested if the file was truncated meanwhile

  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }
  std::uint64_t size() const { return size_; }
  bool is_in_memory() const { return is_in_memory_; }  // on a file system that does not outlive a boot
  bool is_own() const { return is_own_; }              // regular, and of this user

  std::string error;

 private:
  bool load_data(std::uint64_t from, std::uint64_t to);

  int file_ = -1;
  std::uint64_t device_ = 0, inode_ = 0, size_ = 0;
  bool is_in_memory_ = false, is_own_ = false;
  char* bytes_ = nullptr;
  std::uint64_t reserved_ = 0;
  Content content_;
};

}  // namespace commlens::arena
