// SPDX-License-Identifier: Apache-2.0
#include "core/history/difference.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/history/image.h"
#include "tests/unit/check.h"

namespace commlens::history {
namespace {

constexpr std::size_t lines = 300;
using State = std::vector<std::uint64_t>;  // words

const char* bytes_of(const State& state) { return reinterpret_cast<const char*>(state.data()); }

// The state that follows: some words count, some change into anything, some lines become zeros.
State next_of(State state, std::mt19937_64& chance) {
  for (std::size_t line = 0; line < lines; ++line) {
    const std::uint64_t what = chance() % 8;
    for (std::size_t i = 0; i < line_words; ++i) {
      std::uint64_t& word = state[line * line_words + i];
      if (what == 0) word += chance() % 1000;
      if (what == 1 && i % 2 == 0) word = chance();
      if (what == 2) word = 0;
      if (what == 3) word = ~word;
    }
  }
  return state;
}

std::string difference_to(Image& image, const State& state) {
  DifferenceWriter writer;
  CHECK(image.grow(state.size() * sizeof(std::uint64_t)));
  image.replace(0, bytes_of(state), state.size() * sizeof(std::uint64_t), writer);
  return writer.take();
}

bool is_equal(const Image& image, const State& state) {
  const std::size_t n = state.size() * sizeof(std::uint64_t);
  State rest(state);
  std::memset(rest.data(), 0, n);  // an image ends at its last line that is not zero
  std::memcpy(rest.data(), image.bytes(), std::min<std::size_t>(n, image.size()));
  return rest == state;
}

}  // namespace

TEST(a_state_is_the_sum_of_all_differences_before_it) {
  std::mt19937_64 chance(1);
  State state(lines * line_words);
  Image recorded, read;
  for (int i = 0; i < 50; ++i) {
    state = next_of(state, chance);
    CHECK(read.add(difference_to(recorded, state)));
    CHECK(is_equal(recorded, state));
    CHECK(is_equal(read, state));
  }
}

TEST(merged_differences_lead_to_the_same_state) {
  std::mt19937_64 chance(2);
  State state(lines * line_words);
  Image recorded;
  std::vector<std::string> all;
  for (int i = 0; i < 32; ++i) {
    state = next_of(state, chance);
    all.push_back(difference_to(recorded, state));
  }
  while (all.size() > 1) {
    const std::size_t at = chance() % (all.size() - 1);
    all[at] = sum_of(all[at], all[at + 1]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Image read;
  CHECK(read.add(all[0]));
  CHECK(is_equal(read, state));
}

TEST(opposite_differences_cancel_out) {
  Image image;
  State state(lines * line_words), zeros(lines * line_words);
  state[5] = ~std::uint64_t{0};
  state[lines * line_words - 1] = 1;
  const std::string there = difference_to(image, state), back = difference_to(image, zeros);
  CHECK(!there.empty());
  CHECK_EQ(sum_of(there, back), std::string());
}

TEST(the_bytes_of_a_difference_are_those_of_its_format) {
  DifferenceWriter writer;
  writer.add({2, {}});  // nothing changed
  writer.add({3, {1, 0, ~std::uint64_t{0}}});
  writer.add({4, {0, 0, 0, 0, 0, 0, 0, 100}});
  CHECK_EQ(writer.take(), std::string("\x03\x05\x02\x01\x00\x80\xc8\x01", 8));
}

TEST(a_cell_that_counts_takes_few_bytes) {
  DifferenceWriter writer;
  writer.add({1000, {0, 0, 5000, 12'000'000'000, 0, 0, 40'000, 0}});
  CHECK(writer.take().size() <= 14);
}

TEST(damaged_bytes_are_noticed_and_end_the_difference) {
  std::mt19937_64 chance(3);
  State state(lines * line_words);
  Image image;
  const std::string right = difference_to(image, next_of(state, chance));
  for (std::size_t n = 0; n < right.size(); n += 7) {
    Image cut;
    cut.add(right.substr(0, n));  // at the end of a line it is whole
    CHECK(cut.size() <= image.size());
  }
  for (const std::string& wrong : {std::string("\x01"), std::string("\x01\x00", 2), std::string("\x01\x01"),
                                   std::string("\x01\x01\x80"), std::string(20, '\xff'), std::string(1, '\x80')}) {
    Image any;
    CHECK(!any.add(wrong));
    CHECK_EQ(sum_of(wrong, wrong), std::string());
  }
  Image far;
  CHECK(!far.add(std::string("\xff\xff\xff\xff\xff\x01\x01\x02")));  // beyond any arena
}

TEST(random_bytes_do_no_harm) {
  std::mt19937_64 chance(4);
  for (int i = 0; i < (check::is_slow ? 200 : 2000); ++i) {
    std::string bytes(chance() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(chance() % 4 == 0 ? chance() : chance() % 3);
    Image image;
    image.add(bytes);
    sum_of(bytes, bytes);
  }
}

TEST(an_image_names_the_pages_with_data) {
  Image image;
  DifferenceWriter writer;
  State page(4096 / sizeof(std::uint64_t), 7);
  CHECK(image.grow(10 * 4096));
  image.replace(64 * 3, bytes_of(page), 4096, writer);
  image.replace(64 * 4, bytes_of(page), 4096, writer);
  image.replace(64 * 9, bytes_of(page), 4096, writer);
  Image read;
  CHECK(read.add(writer.take()));
  for (const Image* one : {&image, &read}) {
    const arena::Content content = one->content();
    CHECK_EQ(content.size, std::uint64_t{10 * 4096});
    CHECK_EQ(content.data.size(), std::size_t{2});
    CHECK_EQ(content.data_bytes(), std::uint64_t{3 * 4096});
    CHECK_EQ(content.next_data(0), std::uint64_t{3 * 4096});
  }
}

}  // namespace commlens::history
