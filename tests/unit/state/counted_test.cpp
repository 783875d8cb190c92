// SPDX-License-Identifier: Apache-2.0
#include "core/state/counted.h"

#include "core/state/sums.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr Site site = 77;
const Key key = make_key(2, 3, 4, 5);

Cell timed(std::uint64_t calls, Ticks time, Ticks time_min, Ticks time_max) {
  return {key, site, calls, time, time_min, time_max, 8 * calls, calls};
}
// upper, lower: of the variance.
Cell untimed(std::uint64_t calls, Ticks time, std::uint64_t upper, std::uint64_t lower) {
  return {untimed_key(key), site, calls, time, lower, upper, 8 * calls, calls};
}

CountedCell added(const std::vector<Cell>& cells) {
  Counted counted;
  CountedThread own;
  for (const Cell& cell : cells) add_cell_to(counted, &own, cell);
  CHECK_EQ(counted.cells.size(), 1u);
  const CountedCell& sum = counted.cells[{key, site}];
  const CountedCell& of_thread = own.cells[{key, site}];
  CHECK_EQ(of_thread.time_min, sum.time_min);
  CHECK_EQ(of_thread.time_max, sum.time_max);
  CHECK_EQ(of_thread.untimed, sum.untimed);
  return sum;
}

struct Row {
  std::uint64_t calls = 0;
  Ticks time = 0, time_min = 0, time_max = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0, untimed = 0;
};

}  // namespace

TEST(untimed_calls_are_in_the_sum_of_their_cell_but_neither_shortest_nor_longest) {
  const Cell some = timed(3, 60, 10, 30), few = timed(2, 55, 20, 35), others = untimed(100, 2000, 0, 49);
  for (const std::vector<Cell>& cells :
       {std::vector<Cell>{some, few, others}, {others, some, few}, {few, others, some}}) {
    const CountedCell sum = added(cells);
    CHECK_EQ(sum.calls, 105u);
    CHECK_EQ(sum.untimed, 100u);
    CHECK_EQ(sum.time, 2115u);
    CHECK_EQ(sum.time_min, 10u);
    CHECK_EQ(sum.time_max, 35u);
    CHECK_EQ(sum.bytes_sent, 840u);
    CHECK_EQ(sum.bytes_received, 105u);
    CHECK(sum.variance == 49);
  }
}

TEST(the_variance_has_two_words) {
  CHECK(added({untimed(1, 1, 3, 5)}).variance == 3 * 0x1p60 + 5);
  CHECK(added({untimed(1, 1, 0, 5), untimed(1, 1, 0, 6)}).variance == 11);
}

TEST(a_thread_without_timed_calls_does_not_make_the_shortest_call_zero) {
  const Row of_one{2, 30, 10, 20, 0, 0, 0}, of_other{5, 0, 0, 0, 0, 0, 5}, mixed{9, 90, 7, 40, 0, 0, 8};
  for (const std::vector<Row>& rows : {std::vector<Row>{of_one, of_other, mixed}, {of_other, mixed, of_one}}) {
    Row sum;
    for (const Row& row : rows) add_calls_and_untimed(sum, row);
    CHECK_EQ(sum.calls, 16u);
    CHECK_EQ(sum.untimed, 13u);
    CHECK_EQ(sum.time_min, 7u);
    CHECK_EQ(sum.time_max, 40u);
  }
}

}  // namespace commlens
