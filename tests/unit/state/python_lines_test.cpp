// SPDX-License-Identifier: Apache-2.0
// The tables, and the lines where instructions begin, are those of one function in three versions of CPython: with
// lines that go back, and more lines and instructions than a byte counts.
#include "core/state/python_lines.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/check.h"

namespace commlens::python {
namespace {

using Begins = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

template <std::size_t size>
std::string table_of(const char (&bytes)[size]) {
  return std::string(bytes, size - 1);
}

const std::string lnotab = table_of(
    "\x00\x02\x06\x01\x06\xfe\x04\x7f\x00\x4d\x08\x01\x04\x01\x14\x01\x0c\x01\x10\x02\x16\x01\xff\x00\x11\x01");
const std::string ranges = table_of(
    "\x06\x02\x06\x01\x04\xfe\x00\x7f\x08\x4d\x04\x01\x14\x01\x0c\x01\x0c\x01\x02\xff\x02\x80\x14\x03\xfe\x01\x12\x00"
    "\x08\x01");
const std::string locations = table_of(
    "\x80\x00\xe0\x08\x09\x88\x01\x88\x21\x89\x04\x8c\x04\xd8\x08\x09\x88\x01\x88\x21\x89\x04\x8c\x04\xf0\x05\x03\x09"
    "\x06"
    "\x80\x41\xf0\x58\x06\x00\x0e\x0f\xf0\x00\x06\x05\x11\xf0\x00\x06\x05\x11\x88\x01\xf0\x02\x05\x09\x11\xd8\x0c\x0d"
    "\x88"
    "\x41\x88\x61\x89\x44\x8c\x44\x88\x44\x90\x21\x90\x21\x90\x41\x91\x24\x94\x24\x90\x24\x90\x24\xf8\xdd\x0f\x19\xf0"
    "\x00"
    "\x01\x09\x11\xf0\x00\x01\x09\x11\xf0\x00\x01\x09\x11\xd8\x0c\x0d\x88\x41\x88\x61\x89\x44\x8c\x44\x88\x44\x88\x44");

void check_lines(Lines kind, const std::string& table, const Begins& begins, std::uint64_t end) {
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::uint64_t next = i + 1 < begins.size() ? begins[i + 1].first : end;
    for (std::uint64_t at = begins[i].first; at < next; at += 2)
      CHECK_EQ(line_at(kind, table, 5, at), begins[i].second);
  }
}

TEST(lines_are_those_of_cpython) {
  check_lines(Lines::lnotab, lnotab,
              {{0, 7},
               {6, 8},
               {12, 6},
               {16, 210},
               {24, 211},
               {28, 212},
               {48, 213},
               {60, 214},
               {76, 216},
               {98, 217},
               {370, 218}},
              378);
  // An instruction without a line has that of the function.
  check_lines(Lines::ranges, ranges,
              {{0, 7},
               {6, 8},
               {12, 6},
               {16, 210},
               {24, 211},
               {28, 212},
               {48, 213},
               {60, 214},
               {72, 213},
               {74, 5},
               {76, 216},
               {96, 217},
               {368, 218}},
              376);
  check_lines(Lines::locations, locations,
              {{0, 5}, {2, 7}, {22, 8}, {42, 6}, {46, 210}, {54, 211}, {56, 212}, {102, 5}, {104, 213}, {122, 214}},
              146);
}

TEST(any_bytes_have_lines) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string table(random() % 40, '\0');
    for (char& byte : table) byte = static_cast<char>(random());
    for (const Lines kind : {Lines::lnotab, Lines::ranges, Lines::locations})
      line_at(kind, table, random(), random() % 64);
  }
  CHECK_EQ(line_at(Lines::locations, "", 7, 3), 7u);
}

}  // namespace
}  // namespace commlens::python
