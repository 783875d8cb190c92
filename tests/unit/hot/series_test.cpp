// SPDX-License-Identifier: Apache-2.0
#include "core/state/series.h"

#include <cmath>
#include <map>
#include <string>

#include "core/hot/regions.h"
#include "core/state/notices.h"
#include "core/state/regions.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/clock.h"
#include "tests/unit/hot/recorded_regions.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using Stored = std::map<std::uint64_t, SeriesValue>;  // by number

Stored stored_of(const Thread& thread, std::uint64_t wanted) {
  Stored found;
  each_value(thread, [&](std::uint64_t metric, const SeriesValue& value) {
    if (metric != wanted) return;
    CHECK(found.emplace(value.number, value).second);
  });
  return found;
}

// The smallest power of two with which at most `most` of the numbers below `count` are its multiples.
std::uint64_t stride_of(std::uint64_t count, std::uint64_t most) {
  std::uint64_t stride = 1;
  while ((count + stride - 1) / stride > most) stride *= 2;
  return stride;
}

}  // namespace

TEST(a_series_has_evenly_spaced_values_and_never_more_than_its_limit) {
  for (const unsigned long asked : {1ul, 2ul, 3ul, 4ul, 6ul, 10ul, 64ul}) {
    in_process([asked] {
      choose_series(asked);
      const std::uint64_t most = asked + asked % 2;
      CHECK_EQ(region_limits.values, most);
      Thread& thread = this_thread();
      for (std::uint64_t i = 0; i < 700; ++i) {
        test_clock::go_on(3);
        record_in_series(thread, 7, 0.5 * static_cast<double>(i));
        const std::uint64_t stride = stride_of(i + 1, most);
        const Stored stored = stored_of(thread, 7);
        CHECK_EQ(stored.size(), i / stride + 1);
        CHECK(stored.size() <= most);
        CHECK(i + 1 < most || stored.size() > most / 2);
        for (const auto& [number, value] : stored) {
          CHECK_EQ(number % stride, 0u);
          CHECK_EQ(value.value, 0.5 * static_cast<double>(number));
          CHECK_EQ(value.time, start_of_time + 3 * (number + 1));
          CHECK_EQ(value.key, make_region_key(0, 0, -1));
        }
      }
      CHECK_EQ(recorded_by(thread).values.at({{"", 0, -1}, 7}).count, 700u);
    });
  }
}

TEST(the_values_of_each_metric_have_their_regions_and_those_that_are_not_finite_are_left_out) {
  in_process([] {
    choose_series(16);
    Thread& thread = this_thread();
    begin_region(thread, called("steps"), 1, OpeningKind::loop_one_by_one);
    for (int i = 0; i < 3; ++i) {
      begin_iteration(thread, 1);
      record_in_series(thread, 1, i);
      record_in_series(thread, 1, i % 2 == 0 ? std::nan("") : HUGE_VAL);
      record_in_series(thread, most_metrics, -i);
    }
    end_region(thread, called("steps"), 1);
    record_in_series(thread, 1, 9);
    const Stored first = stored_of(thread, 1), last = stored_of(thread, most_metrics);
    CHECK_EQ(first.size(), std::size_t{4});
    CHECK_EQ(last.size(), std::size_t{3});
    for (std::int32_t i = 0; i < 3; ++i) {
      const RegionKey key = make_region_key(1, 0, i);
      CHECK_EQ(first.at(static_cast<std::uint64_t>(i)).key, key);
      CHECK_EQ(last.at(static_cast<std::uint64_t>(i)).key, key);
      CHECK_EQ(last.at(static_cast<std::uint64_t>(i)).value, -1.0 * i);
    }
    CHECK_EQ(first.at(3).key, make_region_key(0, 0, -1));
    // A number that is no metric's.
    record_in_series(thread, most_metrics + 1, 1);
    record_in_series(thread, ~std::uint64_t{0}, 1);
    CHECK_EQ(stored_of(thread, 1).size(), std::size_t{4});
  });
}

TEST(a_series_is_empty_without_the_option_and_after_the_counters_were_cleared) {
  in_process([] {
    Thread& thread = this_thread();
    record_value(thread, 1, 1);
    CHECK(thread.regions->series == nullptr);
    choose_series(4);
    for (int i = 0; i < 9; ++i) record_in_series(thread, 1, i);
    pause_counting();
    record_in_series(thread, 1, 100);
    resume_counting();
    CHECK_EQ(stored_of(thread, 1).size(), std::size_t{3});
    forget_counted();
    CHECK(stored_of(thread, 1).empty());
    for (int i = 0; i < 3; ++i) record_in_series(thread, 1, 10 + i);
    const Stored stored = stored_of(thread, 1);
    CHECK_EQ(stored.size(), std::size_t{3});
    CHECK_EQ(stored.at(2).value, 12.0);
  });
}

TEST(without_memory_for_a_series_the_sums_are_right_and_it_is_tried_and_said_once) {
  for (int allowed = 0; allowed < 8; ++allowed) {
    in_process([allowed] {
      choose_series(1 << 20);  // each series needs memory of its own
      Thread& thread = this_thread();
      record_in_series(thread, 2, 1);  // so that there is room for cells
      const int before = shortage::refusals();
      int refused = 0;
      {
        const shortage::NoMemory little(allowed);
        record_in_series(thread, 1, 0);
        refused = shortage::refusals();
        for (int i = 1; i < 5; ++i) record_in_series(thread, 1, i);
        CHECK_EQ(shortage::refusals(), refused);
      }
      record_in_series(thread, 1, 5);
      CHECK_EQ(recorded_by(thread).values.at({{"", 0, -1}, 1}).count, 6u);
      const bool has_room = refused == before;
      CHECK_EQ(stored_of(thread, 1).size(), has_room ? 6u : 0u);
      CHECK_EQ(stored_of(thread, 2).size(), 1u);
      CHECK_EQ(notices().size(), has_room ? 0u : 1u);
    });
  }
}

}  // namespace commlens
