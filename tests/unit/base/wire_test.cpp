// SPDX-License-Identifier: Apache-2.0
#include "core/base/wire.h"

#include <limits>
#include <random>

#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

WireReader reader(const std::vector<char>& bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

TEST(numbers_and_texts_come_back_as_they_were) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers{0, 1, 127, 128, most - 1, most};
  std::vector<std::int64_t> signed_numbers{0, 1, -1, 63, -64, 64, lowest, highest};
  std::vector<std::string> texts{"", "x", std::string(200, 'a'), std::string("\0\xff%", 3)};
  for (int i = 0; i < 2000; ++i) {
    numbers.push_back(random() >> (random() % 64));
    signed_numbers.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
    texts.emplace_back(random() % 20, static_cast<char>(random()));
  }
  WireWriter out;
  for (const std::uint64_t n : numbers) out.number(n);
  for (const std::int64_t n : signed_numbers) out.signed_number(n);
  for (const std::string& t : texts) out.text(t);
  WireReader in = reader(out.bytes());
  for (const std::uint64_t n : numbers) CHECK_EQ(in.number(), n);
  for (const std::int64_t n : signed_numbers) CHECK_EQ(in.signed_number(), n);
  for (const std::string& t : texts) CHECK(in.text() == t);
  CHECK(in.ok());
  CHECK_EQ(in.number(), 0u);  // the end
  CHECK(!in.ok());
}

TEST(small_numbers_of_either_sign_take_one_byte) {
  WireWriter out;
  for (int n = -64; n < 64; ++n) out.signed_number(n);
  for (unsigned n = 0; n < 128; ++n) out.number(n);
  CHECK_EQ(out.bytes().size(), 256u);
}

TEST(input_cut_off_anywhere_reads_as_zeros_and_is_not_ok) {
  WireWriter out;
  for (const std::uint64_t n : {std::uint64_t{5}, most, std::uint64_t{300}}) {
    out.number(n);
    out.text(std::string(static_cast<std::size_t>(n % 200), 'x'));
    out.signed_number(-static_cast<std::int64_t>(n / 2));
  }
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    const std::vector<char> part(out.bytes().begin(), out.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    WireReader in = reader(part);
    for (int i = 0; i < 3; ++i) {
      in.number();
      in.text();
      in.signed_number();
    }
    CHECK(!in.ok());
    CHECK_EQ(in.number(), 0u);
    CHECK(in.text().empty());
  }
}

TEST(a_text_longer_than_what_is_left_is_refused) {
  for (const std::uint64_t length : {std::uint64_t{4}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, most}) {
    WireWriter out;
    out.number(length);
    std::vector<char> bytes = out.bytes();
    bytes.insert(bytes.end(), {'a', 'b', 'c'});
    WireReader in = reader(bytes);
    CHECK(in.text().empty());
    CHECK(!in.ok());
  }
}

TEST(a_number_without_an_end_is_refused) {
  const std::vector<char> bytes(100, '\xff');
  WireReader in = reader(bytes);
  CHECK_EQ(in.number(), 0u);
  CHECK(!in.ok());
}

}  // namespace commlens
