// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace commlens::arena {

// Bytes of a file in memory, on a page boundary.
struct Content {
  const char* bytes = nullptr;
  std::uint64_t size = 0;
  // [first, end) of what is no hole of the file, in order; holes read as zeros.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data;

  std::uint64_t data_bytes() const;
  // The first place from `at` on that is no hole; `size` when there is none.
  std::uint64_t next_data(std::uint64_t at) const;
};

// A file that may be an arena, and may be anything: opened once, and believed only when it belongs to the user who
// asks.  Whatever is read comes from that one descriptor, so that nobody can exchange the file in between.
class Input {
 public:
  Input() = default;
  ~Input() { unload(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // False, with `error`, when it cannot be opened or is not to be believed: no regular file, of another user, or one
  // that others may write to.
  bool open(const std::string& path);

  // Reads up to `bytes` from `at` on; returns how many are there.
  std::size_t read_at(char* to, std::size_t bytes, std::uint64_t at) const;

  // Brings the first `bytes` into memory on a page boundary.  Holes of the file read as zeros and take no memory.
  bool load(std::uint64_t bytes);
  // Gives memory and descriptor back; the facts of the file stay.
  void unload();
  const Content& content() const { return content_; }  // less than asked for when the file was cut off meanwhile

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
