// SPDX-License-Identifier: Apache-2.0
// Unwinds a copy of a stack by a copy of this program's tables: both can be changed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "core/base/memory.h"
#include "core/base/unwind_rows.h"
#include "core/base/unwind_walk.h"
#include "tests/unit/base/unwind_chain.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

// A copy between two pages that cannot be read: behind its last byte, and at most a page before its first one.
class GuardedCopy {
 public:
  GuardedCopy(const void* from, std::size_t bytes) : mapped_((bytes + page - 1) / page * page + 2 * page) {
    memory_ = static_cast<std::uint8_t*>(map_memory(mapped_));
    begin = memory_ + mapped_ - page - bytes;
    CHECK(read_memory(from, begin, bytes));  // a sanitizer objects to copying more than one object
    mprotect(memory_, page, PROT_NONE);
    mprotect(memory_ + mapped_ - page, page, PROT_NONE);
  }
  ~GuardedCopy() { unmap_memory(memory_, mapped_); }
  GuardedCopy(const GuardedCopy&) = delete;
  GuardedCopy& operator=(const GuardedCopy&) = delete;

  std::uint8_t* begin;

 private:
  std::size_t mapped_;
  std::uint8_t* memory_;
};

UnwindTables copied_tables;

bool find_copied(std::uint64_t pc, UnwindTables& tables) {
  tables = copied_tables;
  return pc >= tables.first && pc < tables.behind;
}

// The stack at the end of a chain, and the tables, with the addresses in them adapted to their new places.  All that
// tables contain is relative, so that they describe functions that are as far away from the copy as from the original.
class CopiedStack {
 public:
  static constexpr std::size_t words = 1024;
  static constexpr int most_returns = 12;

  explicit CopiedStack(const UnwindTables& original)
      : tables_size(static_cast<std::size_t>(original.end - original.begin)), tables(original.begin, tables_size) {
    const auto moved = static_cast<std::uint64_t>(tables.begin - original.begin);
    copied_tables.first = original.first + moved;
    copied_tables.behind = original.behind + moved;
    copied_tables.begin = tables.begin;
    copied_tables.end = tables.begin + tables_size;
    copied_tables.header = original.header + moved;
    const std::uint64_t sp = probed.frame.sp, stack_moved = reinterpret_cast<std::uint64_t>(stack) - sp;
    const auto adapted = [&](std::uint64_t value) {
      if (value - sp < sizeof stack) return value + stack_moved;
      return value - original.first < original.behind - original.first ? value + moved : value;
    };
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t value = 0;
      CHECK(read_memory(reinterpret_cast<std::uint64_t*>(sp) + i, &value, sizeof value));
      stack[i] = adapted(value);
    }
    frame = {probed.frame.pc + moved, sp + stack_moved, adapted(probed.frame.fp)};
    for (int i = 0; i < most_returns; ++i) expected.push_back(adapted(probed.returns[i]));
  }

  Addresses unwound() {
    std::uint64_t returns[most_returns];
    found = unwind_by(find_copied, frame, returns, most_returns, found_words, Probed::most_words);
    return {returns, returns + found.frames};
  }

  StackFrame frame;
  std::uint64_t stack[words];
  std::size_t tables_size;
  GuardedCopy tables;
  Addresses expected;
  Unwound found;
  StackWord found_words[Probed::most_words];
};

CopiedStack* copied;

void copy() {
  UnwindTables original;
  CHECK(find_tables(probed.frame.pc, original));
  copied = new CopiedStack(original);
}

// A chain of functions of this program, on a stack that goes on for longer than the copy.
__attribute__((noinline)) void copy_chain(const std::vector<int>& kinds) {
  volatile char space[sizeof(std::uint64_t) * CopiedStack::words];
  space[0] = 1;
  at_probe = copy;
  call_chain(kinds);
  at_probe = nullptr;
  space[1] = space[0];
}

// Returns the position of the description of a function in the copied tables; *tables.end, if there is none.
std::uint8_t* description_of(std::uint64_t pc) {
  std::uint32_t count = 0;
  std::memcpy(&count, copied_tables.header + 8, sizeof count);
  const auto origin = reinterpret_cast<std::uint64_t>(copied_tables.header);
  std::int32_t best = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t row[2];
    std::memcpy(row, copied_tables.header + 12 + i * sizeof row, sizeof row);
    if (origin + static_cast<std::uint64_t>(std::int64_t{row[0]}) <= pc) best = row[1];
  }
  return copied->tables.begin + (copied_tables.header + best - copied_tables.begin);
}

}  // namespace

TEST(exactly_the_words_that_callers_depend_on_are_found) {
  for (const auto& kinds : std::vector<std::vector<int>>{{0, 1, 2, 3, 4}, {5, 13, 5, 6, 1}, {11, 7, 2, 14, 10}}) {
    copy_chain(kinds);
    CopiedStack& c = *copied;
    CHECK(c.unwound() == c.expected);
    const Unwound original = c.found;
    const std::vector<StackWord> words(c.found_words, c.found_words + original.words);
    CHECK(original.end == Unwound::full);
    for (std::uint64_t& word : c.stack) {
      bool is_found = false;
      for (const StackWord& w : words) is_found = is_found || w.at == &word;
      word ^= 16;
      bool is_same = c.unwound() == c.expected && c.found.words == original.words;
      for (int i = 0; is_same && i < original.words; ++i) {
        is_same = c.found_words[i].at == words[static_cast<std::size_t>(i)].at;
      }
      word ^= 16;
      CHECK_EQ(is_same, !is_found);
    }
    c.frame.fp ^= 16;
    CHECK_EQ(c.unwound() == c.expected, !original.uses_fp);
    delete copied;
  }
}

TEST(damaged_tables_are_never_left_and_give_a_cut) {
  std::mt19937_64 random(4711);
  copy_chain({5, 3, 13, 6, 2});
  CopiedStack& c = *copied;
  CHECK(c.unwound() == c.expected);
  std::vector<std::uint8_t*> descriptions;
  for (const std::uint64_t pc : c.expected) descriptions.push_back(description_of(pc - 1));
  const auto offset = static_cast<std::size_t>(copied_tables.header - copied_tables.begin);
  int cuts = 0, others = 0, unharmed = 0;
  const std::vector<std::uint8_t> intact(c.tables.begin, c.tables.begin + c.tables_size);
  for (int round = 0; round < (check::is_slow ? 5000 : 50'000); ++round) {
    std::vector<std::size_t> places;
    for (std::uint64_t i = 0; i <= random() % 6; ++i) {
      std::size_t place = offset + random() % (random() % 4 == 0 ? 12 : c.tables_size - offset);
      const std::uint8_t* const description = descriptions[random() % descriptions.size()];
      std::uint32_t cie = 0;
      std::memcpy(&cie, description + 4, sizeof cie);
      const std::uint8_t* const entry = random() % 4 == 0 ? description + 4 - cie : description;
      if (random() % 8 != 0) place = static_cast<std::size_t>(entry - c.tables.begin) + random() % 40;
      if (place >= c.tables_size) continue;
      c.tables.begin[place] = static_cast<std::uint8_t>(random());
      places.push_back(place);
    }
    const Addresses found = c.unwound();
    if (c.found.end == Unwound::cut) ++cuts;
    ++(found == c.expected ? unharmed : others);
    CHECK(found.size() <= c.expected.size());
    for (const std::size_t place : places) c.tables.begin[place] = intact[place];
  }
  CHECK(cuts > 100);
  CHECK(others > 100);
  CHECK(unharmed > 100);
  CHECK(c.unwound() == c.expected);
  delete copied;
}

TEST(each_function_of_damaged_tables_can_be_looked_up) {
  std::mt19937_64 random(4712);
  copy_chain({5, 3, 13, 6, 2});
  CopiedStack& c = *copied;
  const auto offset = static_cast<std::size_t>(copied_tables.header - copied_tables.begin);
  int found = 0, intact = 0;
  for (int round = 0; round < 40; ++round) {
    const std::size_t step = check::is_slow ? 997 : 97;
    for (std::uint64_t pc = copied_tables.first; pc < copied_tables.behind; pc += step) {
      UnwindRow row;
      const bool is_found = find_row(copied_tables, pc, row);
      found += is_found ? 1 : 0;
      if (round == 0) intact += is_found ? 1 : 0;
    }
    // The copy gets worse from round to round, by one byte of 200 however large the tables of this build are.
    for (std::size_t i = 0; i < 200 + c.tables_size / 200; ++i) {
      c.tables.begin[offset + 12 + random() % (c.tables_size - offset - 12)] = static_cast<std::uint8_t>(random());
    }
  }
  CHECK(intact > 10);
  CHECK(found < 40 * intact);
  delete copied;
}

}  // namespace commlens
