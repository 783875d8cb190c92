// SPDX-License-Identifier: Apache-2.0
#include "core/history/image.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/arena/format.h"

namespace commlens::history {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Image::~Image() {
  if (bytes_ != nullptr) munmap(bytes_, reserved_);
}

Image& Image::operator=(Image&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  std::swap(reserved_, other.reserved_);
  std::swap(has_data_, other.has_data_);
  return *this;
}

bool Image::grow(std::uint64_t bytes) {
  if (bytes > arena::most_bytes) return false;
  if (bytes > reserved_) {
    const std::uint64_t wanted = rounded(bytes, arena::largest_chunk);
    void* const memory = bytes_ == nullptr ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                           : mremap(bytes_, reserved_, wanted, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) return false;
    madvise(memory, wanted, MADV_NOHUGEPAGE);  // as Input::load(): a page of data takes one page
    bytes_ = static_cast<char*>(memory);
    reserved_ = wanted;
    has_data_.resize(wanted / page_bytes);
  }
  size_ = std::max(size_, bytes);
  return true;
}

void Image::note(std::uint64_t at) { has_data_[at / page_bytes] = true; }

void Image::replace(std::uint64_t first, const char* now, std::size_t bytes, DifferenceWriter& difference) {
  for (std::size_t at = 0; at < bytes; at += line_bytes) {
    char* const mine = bytes_ + first * line_bytes + at;
    if (std::memcmp(mine, now + at, line_bytes) == 0) continue;
    Line line;
    line.number = first + at / line_bytes;
    std::uint64_t before[line_words];
    std::memcpy(before, mine, line_bytes);
    std::memcpy(line.words, now + at, line_bytes);
    for (std::size_t i = 0; i < line_words; ++i) line.words[i] -= before[i];
    std::memcpy(mine, now + at, line_bytes);
    note(first * line_bytes + at);
    difference.add(line);
  }
}

bool Image::add(std::string_view difference) {
  DifferenceReader reader(difference);
  for (Line line; reader.next(line);) {
    if (line.number >= arena::most_bytes / line_bytes || !grow((line.number + 1) * line_bytes)) return false;
    char* const mine = bytes_ + line.number * line_bytes;
    std::uint64_t words[line_words];
    std::memcpy(words, mine, line_bytes);
    for (std::size_t i = 0; i < line_words; ++i) words[i] += line.words[i];
    std::memcpy(mine, words, line_bytes);
    note(line.number * line_bytes);
  }
  return !reader.is_damaged();
}

arena::Content Image::content() const {
  arena::Content content;
  content.bytes = bytes_;
  content.size = size_;
  for (std::uint64_t page = 0; page * page_bytes < size_; ++page) {
    if (!has_data_[page]) continue;
    const std::uint64_t from = page * page_bytes, to = std::min(from + page_bytes, size_);
    if (!content.data.empty() && content.data.back().second == from) {
      content.data.back().second = to;
    } else {
      content.data.emplace_back(from, to);
    }
  }
  return content;
}

}  // namespace commlens::history
