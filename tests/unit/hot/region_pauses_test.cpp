// SPDX-License-Identifier: Apache-2.0
// Counting that is paused, forgotten or closed while threads are in regions.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/hot/regions.h"
#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/clock.h"
#include "tests/unit/hot/recorded_regions.h"

namespace commlens {

using check::is_slow;

TEST(of_a_call_under_way_only_the_time_that_counts_is_counted) {
  in_process([] {
    constexpr Key key = make_key(1, 1, 1, 0);
    Thread& thread = this_thread();
    choose_regions("", 4, 4);
    begin_slices(test_clock::now());
    const auto call = [&](auto meanwhile) {
      const Ticks start = test_clock::now();
      char frame[2 * sizeof(void*)] = {};
      thread.enter(frame);
      thread.current.since = start;
      test_clock::go_on(10);
      meanwhile();
      test_clock::go_on(5);
      thread.outermost = nullptr;
      const Cell* const cell = record(thread, key, 0, test_clock::now() - start, 0, 0);
      const Ticks time = cell->time;
      thread.mpi = const_cast<Cell*>(cell)->time = 0;
      return time;
    };
    const RegionName name = called("region");
    begin_region(thread, name, 1, OpeningKind::region);
    CHECK_EQ(call([] {}), 15u);
    CHECK_EQ(call([] {
               pause_counting();
               test_clock::go_on(1000);
               resume_counting();
             }),
             15u);
    CHECK_EQ(call([&] {  // what a callback does in between
               for (int i = 0; i < 3; ++i) {
                 pause_counting();
                 test_clock::go_on(1000);
                 resume_counting();
                 begin_region(thread, name, 1, OpeningKind::region);
                 test_clock::go_on(1);
                 end_region(thread, name, 1);
               }
             }),
             18u);
    CHECK_EQ(call([] { forget_counted(); }), 5u);
    CHECK_EQ(call([] {}), 15u);
    pause_counting();  // it begins in a pause
    CHECK_EQ(call([] { resume_counting(); }), 5u);
    CHECK_EQ(call([] {}), 15u);
  });
}

TEST(nobody_changes_what_is_counted_while_regions_are_closed) {
  in_process([] {
    test_clock::set(0);  // the real one
    choose_regions("", 4, 4);
    std::atomic<int> begun{0};
    std::atomic<bool> over{false};
    std::thread other([&] {
      Thread& thread = this_thread();
      const std::uint64_t metric = metric_of("values", "");
      for (int i = 0; !over; begun = ++i) {
        const std::string name = "region " + std::to_string(i % 5000);
        begin_region(thread, called("outer"), 1, OpeningKind::region);
        begin_region(thread, called(name), 1, OpeningKind::loop_as_sum);
        begin_iteration(thread, 1);
        record_value(thread, metric, 1);
        end_region(thread, innermost, 1);
        end_region(thread, innermost, 1);
      }
    });
    const Thread* thread = nullptr;
    while (begun < 100 || (thread = first_thread()) == nullptr) std::this_thread::yield();
    const auto wait_for_more = [&begun](int more) {
      const int then = begun;
      while (begun < then + more) std::this_thread::yield();
    };
    std::uint64_t before = 0;
    for (int i = 0; i < 50; ++i) {
      close_regions();
      const auto counted = [&] {
        std::uint64_t sum = thread->regions->depth;
        each_cell(thread->regions->cells, [&sum](const RegionCell& cell) { sum += cell.calls + cell.time; });
        each_cell(thread->regions->metrics, [&sum](const MetricCell& cell) { sum += cell.count; });
        return sum;
      };
      const std::uint64_t first = counted();
      CHECK(first > before);
      before = first;
      wait_for_more(100);
      CHECK_EQ(counted(), first);
      reopen_regions();
      wait_for_more(10);
    }
    over = true;
    other.join();
  });
}

// Three threads go in and out of regions, a fourth one pauses and resumes as fast as it can.
TEST(pauses_by_another_thread_leave_nested_time_within_time_and_threads_in_their_regions) {
  in_process([] {
    test_clock::set(0);  // the real one
    choose_regions("", 4, 4);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&over] {
        Thread& thread = this_thread();
        const RegionName outer = called("outer"), inner = called("inner");
        while (!over) {
          begin_region(thread, outer, 1, OpeningKind::region);
          for (int k = 0; k < 20; ++k) {
            begin_region(thread, inner, 1, OpeningKind::region);
            end_region(thread, inner, 1);
          }
          end_region(thread, outer, 1);
        }
        // Nobody says anything of this thread any more when the last one resumes.
        begin_region(thread, outer, 1, OpeningKind::region);
        while (is_paused(pauses.changes.load())) std::this_thread::yield();
        for (int k = 0; k < 1000 && thread.region() == uncounted_region; ++k) std::this_thread::yield();
        CHECK_EQ(thread.region(), thread.regions->frames[1].region);
        end_region(thread, outer, 1);
        const Recorded recorded = recorded_by(thread);
        for (const auto& [place, sum] : recorded.times) CHECK(sum.nested <= sum.time && sum.max <= sum.time);
        Ticks inner_time = 0, nested = 0;
        for (const auto& [place, sum] : recorded.times) {
          inner_time += std::get<0>(place) == "outer/inner" ? sum.time : 0;
          nested += sum.nested;
        }
        CHECK_EQ(nested, inner_time);
      });
    }
    for (int i = 0; i < (is_slow ? 2'000 : 5'000); ++i) {
      pause_counting();
      if (i % 3 == 0) std::this_thread::yield();
      resume_counting();
    }
    pause_counting();
    over = true;
    resume_counting();
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace commlens
