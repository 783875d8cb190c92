// SPDX-License-Identifier: Apache-2.0
#include "core/out/gap.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/identity.h"

namespace commlens::out {
namespace {

// Returns a number that no counter reaches, and that a text contains only by chance.
std::uint64_t some_number() { return (mixed(now() ^ static_cast<Identity>(getpid())) >> 2) | 1ull << 61; }

// Returns the bytes in which SQLite stores a number.
std::array<unsigned char, 8> stored(std::uint64_t number) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(number >> (56 - 8 * i));
  return bytes;
}

}  // namespace

Gap::Gap(Ticks (*clock)()) : clock_(clock), filler_(some_number()) {}

std::uint64_t Gap::open(Ticks begin) {
  begin_ = begin;
  return filler_;
}

void Gap::find(unsigned char* bytes, std::size_t size) {
  std::array<unsigned char, 8> filler = stored(filler_);
  unsigned char* const at = begin_ == 0 ? bytes + size : std::search(bytes, bytes + size, filler.begin(), filler.end());
  if (at == bytes + size) return;
  bytes_ = at;
  offset_ = at - bytes;
  std::fill_n(bytes_, filler.size(), static_cast<unsigned char>(0));
}

Finish Gap::filling() {
  return [this](int file) { fill(file); };
}

void Gap::fill(int file) {
  if (bytes_ == nullptr) return;
  const std::array<unsigned char, 8> time = stored(TickScale::since_start().ns(clock_() - begin_));
  if (pwrite(file, time.data(), time.size(), offset_) == static_cast<ssize_t>(time.size()))
    std::copy(time.begin(), time.end(), bytes_);
}

}  // namespace commlens::out
