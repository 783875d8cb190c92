// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/history/difference.h"
#include "core/recover/input.h"

namespace commlens::history {

// The content of an arena at one time.  Pages without data take no memory.
class Image {
 public:
  Image() = default;
  ~Image();
  Image(Image&& other) noexcept { *this = std::move(other); }
  Image& operator=(Image&& other) noexcept;

  // Makes it at least `bytes` bytes long; new ones are zeros.  Returns false if there is no memory.
  bool grow(std::uint64_t bytes);
  std::uint64_t size() const { return size_; }
  const char* bytes() const { return bytes_; }

  // Replaces the lines from `first` on by `bytes` bytes, a multiple of a line, and writes the difference.  pre: the
  // image is long enough.
  void replace(std::uint64_t first, const char* now, std::size_t bytes, DifferenceWriter& difference);

  // Adds a difference.  Returns false if it is damaged, or longer than any arena; the lines before are added.
  bool add(std::string_view difference);

  // Returns the content as that of a file.  Valid as long as this object is not changed.
  arena::Content content() const;

 private:
  void note(std::uint64_t at);

  char* bytes_ = nullptr;
  std::uint64_t size_ = 0, reserved_ = 0;
  std::vector<bool> has_data_;  // by page
};

}  // namespace commlens::history
