// SPDX-License-Identifier: Apache-2.0
#include "core/out/utf8.h"

#include <cstdint>
#include <cstring>

namespace commlens::out {
namespace {

// Returns the length of the well-formed sequence at `at`, or 0.  The ranges of the second byte exclude overlong forms,
// surrogates, and code points beyond U+10FFFF (Unicode standard, table 3-7).
std::size_t sequence_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(at), second = byte(at + 1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && follows(at + 2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

bool is_ascii(const std::string& text) {
  std::uint64_t bits = 0, word;
  std::size_t at = 0;
  for (; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    bits |= word;
  }
  for (; at < text.size(); ++at) bits |= static_cast<unsigned char>(text[at]);
  return (bits & 0x8080808080808080u) == 0;
}

}  // namespace

std::string utf8(const std::string& text) {
  if (is_ascii(text)) return text;  // most texts
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) {
      result += "\xef\xbf\xbd";
      ++at;
    } else {
      result.append(text, at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace commlens::out
