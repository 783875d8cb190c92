// SPDX-License-Identifier: Apache-2.0
#include "core/out/utf8.h"

#include <random>

#include "tests/unit/check.h"

namespace commlens::out {
namespace {

const std::string replacement = "\xef\xbf\xbd";

bool is_character(std::uint32_t c) { return c <= 0x10ffff && (c < 0xd800 || c > 0xdfff); }

// Any number below 2^21 in `length` bytes, well-formed or not.
std::string encoded(std::uint32_t c, int length) {
  if (length == 1) return {static_cast<char>(c)};
  std::string text;
  for (int i = length - 1; i > 0; --i, c >>= 6) text.insert(text.begin(), static_cast<char>(0x80 | (c & 0x3f)));
  return static_cast<char>((0xf00 >> length & 0xff) | c) + text;
}

int shortest(std::uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

// The same by decoding: what a sequence stands for decides whether it may stand there.
std::string oracle(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    for (int n = 1; n <= 4 && length == 0; ++n) {
      const std::string part = text.substr(at, static_cast<std::size_t>(n));
      if (part.size() < static_cast<std::size_t>(n)) break;
      std::uint32_t c = static_cast<unsigned char>(part[0]) & (n == 1 ? 0x7f : 0x7f >> n);
      for (int i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(part[static_cast<std::size_t>(i)]) & 0x3f);
      if (is_character(c) && shortest(c) == n && encoded(c, n) == part) length = static_cast<std::size_t>(n);
    }
    result += length == 0 ? replacement : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return result;
}

}  // namespace

TEST(every_character_stays) {
  std::string all;
  for (std::uint32_t c = 1; c <= 0x10ffff; ++c) {
    if (is_character(c)) all += encoded(c, shortest(c));
  }
  CHECK(utf8(all) == all);
  CHECK_EQ(utf8(""), std::string());
}

TEST(what_is_no_character_is_replaced_byte_by_byte) {
  CHECK_EQ(utf8("Gr\xfc\xdf e"), "Gr" + replacement + replacement + " e");  // Latin-1
  CHECK_EQ(utf8("\xed\xa0\x80"), replacement + replacement + replacement);  // a surrogate
  CHECK_EQ(utf8("\xc0\xaf"), replacement + replacement);                    // '/' the long way
  CHECK_EQ(utf8("\xf4\x90\x80\x80").size(), 4 * replacement.size());        // beyond the last character
  CHECK_EQ(utf8("a\xe2\x82"), "a" + replacement + replacement);             // cut off
  CHECK_EQ(utf8("\xe2\x82z"), replacement + replacement + "z");
  CHECK_EQ(utf8("\xff"), replacement);
}

TEST(every_wrong_length_of_every_character_is_replaced) {
  for (std::uint32_t c = 0; c < 1u << 21; c += c < 0x1000 ? 1 : 61) {
    for (int length = shortest(c) + 1; length <= 4; ++length) {
      const std::string text = encoded(c, length);
      CHECK(utf8(text) == oracle(text));
      CHECK(utf8(text) != text);
    }
    if (!is_character(c)) CHECK(utf8(encoded(c, shortest(c))) != encoded(c, shortest(c)));
  }
}

TEST(random_bytes_become_what_a_decoder_says_and_stay_so) {
  std::mt19937 random(1);
  const std::string likely = "a\x80\xbf\xc2\xe0\xa0\xed\x9f\xf0\x90\xf4\x8f\xff";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 8; n > 0; --n) {
      text += i % 2 == 0 ? static_cast<char>(random()) : likely[random() % likely.size()];
    }
    CHECK(utf8(text) == oracle(text));
    CHECK(utf8(utf8(text)) == utf8(text));
  }
}

}  // namespace commlens::out
