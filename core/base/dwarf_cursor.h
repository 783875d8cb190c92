// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the numbers of DWARF tables, which may be damaged.

#include <cstdint>
#include <cstring>

namespace commlens {

// Never reads outside its bytes.  After an attempt to do so, or after fail(), it is at its end and returns zeros: loops
// end by themselves, and one check of is_good() after several reads is enough.
class DwarfCursor {
 public:
  DwarfCursor() noexcept = default;
  DwarfCursor(const std::uint8_t* begin, const std::uint8_t* end) noexcept : at_(begin), end_(end) {}

  bool is_good() const noexcept { return is_good_; }
  bool is_at_end() const noexcept { return at_ == end_; }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(at_); }

  void fail() noexcept {
    at_ = end_;
    is_good_ = false;
  }

  template <class Number>
  Number number() noexcept {
    Number value{};
    if (!has(sizeof value)) return value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  // ULEB128.  Bits above the 64th are dropped.
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    leb(value);
    return value;
  }

  // SLEB128
  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    const unsigned bits = leb(value);
    if (bits < 64 && bits != 0 && ((value >> (bits - 1)) & 1) != 0) value |= ~std::uint64_t{0} << bits;
    return static_cast<std::int64_t>(value);
  }

  void skip(std::uint64_t bytes) noexcept {
    if (has(bytes)) at_ += bytes;
  }

  // Returns the next `bytes` bytes and skips them.
  DwarfCursor part(std::uint64_t bytes) noexcept {
    const std::uint8_t* const begin = at_;
    skip(bytes);
    DwarfCursor result{begin, is_good_ ? at_ : begin};
    if (!is_good_) result.fail();
    return result;
  }

 private:
  bool has(std::uint64_t bytes) noexcept {
    if (bytes <= static_cast<std::uint64_t>(end_ - at_)) return true;
    fail();
    return false;
  }

  // Returns the number of bits that the bytes hold.
  unsigned leb(std::uint64_t& value) noexcept {
    unsigned bits = 0;
    std::uint8_t byte = 0;
    do {
      byte = number<std::uint8_t>();
      if (bits < 64) {
        value |= static_cast<std::uint64_t>(byte & 0x7f) << bits;
        bits += 7;
      }
    } while ((byte & 0x80) != 0);
    return bits;
  }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool is_good_ = true;
};

}  // namespace commlens
