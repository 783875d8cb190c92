// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace commlens {

// Encodes what ranks send each other: integers with seven bits per byte, low bits first; texts preceded by their
// length.  Sender and receiver are the same build in the same job, so the format needs no version and no byte order;
// what is kept in a file has a number of its format (collect/part.cpp).
class WireWriter {
 public:
  void number(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<char>(n | 0x80));
    bytes_.push_back(static_cast<char>(n));
  }
  // Small negative numbers stay short: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
  void signed_number(std::int64_t n) {
    number((static_cast<std::uint64_t>(n) << 1) ^ static_cast<std::uint64_t>(n >> 63));
  }
  void real(double d) {
    std::uint64_t bits;
    std::memcpy(&bits, &d, sizeof bits);
    number(__builtin_bswap64(bits));  // a number whose mantissa ends in zeros becomes short
  }
  void text(const std::string& t) {
    number(t.size());
    bytes_.insert(bytes_.end(), t.begin(), t.end());
  }
  void pairs(const std::vector<std::pair<std::string, std::string>>& all) {
    number(all.size());
    for (const auto& [key, value] : all) {
      text(key);
      text(value);
    }
  }
  void expect(std::size_t bytes) { bytes_.reserve(bytes); }  // reserves memory; more may be written
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

// Reads what WireWriter wrote, in the same order.  Past the end it returns zeros and empty texts, and ok() is false.
class WireReader {
 public:
  WireReader(const char* begin, std::size_t bytes) : at_(begin), end_(begin + bytes) {}

  std::uint64_t number() {
    std::uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return fail();
      const auto byte = static_cast<unsigned char>(*at_++);
      n |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return n;
    }
    return fail();
  }
  std::int64_t signed_number() {
    const std::uint64_t n = number();
    return static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
  }
  double real() {
    const std::uint64_t bits = __builtin_bswap64(number());
    double d;
    std::memcpy(&d, &bits, sizeof d);
    return d;
  }
  std::string text() {
    const std::uint64_t length = number();
    if (length > static_cast<std::uint64_t>(end_ - at_)) {
      fail();
      return {};
    }
    std::string t(at_, at_ + length);
    at_ += length;
    return t;
  }
  std::vector<std::pair<std::string, std::string>> pairs() {
    std::vector<std::pair<std::string, std::string>> all;
    for (std::uint64_t n = number(); ok_ && n > 0; --n) {
      std::string key = text();
      all.emplace_back(std::move(key), text());
    }
    return all;
  }
  bool ok() const { return ok_; }

 private:
  std::uint64_t fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace commlens
