// SPDX-License-Identifier: Apache-2.0
#include "core/hot/regions.h"

#include <unistd.h>

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/state/notices.h"
#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/clock.h"
#include "tests/unit/hot/recorded_regions.h"
#include "tests/unit/shortage.h"

namespace commlens {

TEST(regions_deeper_than_there_are_frames_count_as_part_of_the_last) {
  in_process([] {
    Thread& thread = this_thread();
    const RegionName name = called("down");
    constexpr int depth = 300;
    for (int i = 0; i < depth; ++i, test_clock::go_on(1)) begin_region(thread, name, 1, OpeningKind::region);
    CHECK_EQ(thread.regions->depth, Regions::most_frames);
    begin_iteration(thread, 1);  // of none of them
    for (int i = 0; i < depth; ++i, test_clock::go_on(1)) end_region(thread, name, 1);
    CHECK_EQ(thread.regions->depth, 0u);
    CHECK_EQ(thread.regions->beyond, 0u);
    const Recorded recorded = recorded_by(thread);
    CHECK_EQ(recorded.times.size(), std::size_t{Regions::most_frames});
    std::string path = "down";
    for (std::uint32_t i = 0; i < Regions::most_frames; ++i, path += "/down") {
      const Sum& sum = recorded.times.at({path, 0, -1});
      // Of the 600 ticks i before it and i behind it are not its own; a tick is behind the last end.
      CHECK_EQ(sum.calls, 1u);
      CHECK_EQ(sum.time, Ticks{2 * depth - 1} - 2 * i);
    }
    CHECK_EQ(notices().size(), 1u);
    CHECK_EQ(notices()[0].text.find("regions are nested more than 128 deep, such as \"down\" at "), 0u);
  });
}

TEST(an_iteration_that_is_a_scope_has_the_number_it_is_given) {
  in_process([] {
    Thread& thread = this_thread();
    const RegionName main = called("main"), steps = called("steps"), sums = called("sums"), inner = called("inner");
    begin_region(thread, main, 1, OpeningKind::region);
    const long most = max_iteration;
    for (const long number : {0L, 1L, 1L, 7L, most - 1, most, most + 1, -1L}) {
      begin_numbered_iteration(thread, steps, 1, OpeningKind::loop_one_by_one, number);
      begin_numbered_iteration(thread, sums, 1, OpeningKind::loop_as_sum, number);
      begin_region(thread, inner, 1, OpeningKind::region);
      test_clock::go_on(5);
      end_region(thread, inner, 1);
      end_region(thread, sums, 1);
      test_clock::go_on(2);
      end_region(thread, steps, 1);
      test_clock::go_on(1);
    }
    end_region(thread, main, 1);
    const Recorded recorded = recorded_by(thread);
    const std::string loop = "main/<steps>", sum = loop + "/<sums>", part = sum + "/inner";
    CHECK_EQ(recorded.times.at({"main", 0, -1}), (Sum{1, 0, 64, 64, 64, 56, 0}));
    CHECK_EQ(recorded.times.at({loop, 0, -1}), (Sum{8, 0, 56, 7, 7, 40, 0}));
    const auto last = static_cast<std::int32_t>(most - 1);
    for (const auto& [number, times] : {std::pair{0, 1u}, {1, 2u}, {7, 1u}, {last, 1u}, {-1, 3u}}) {
      CHECK_EQ(recorded.iterations.at({loop, 0, number}), (Sum{times, 0, times * 7, 7, 7, times * 5, 0}));
      CHECK_EQ(recorded.times.at({part, 0, number}), (Sum{times, 0, times * 5, 5, 5, 0, 0}));
    }
    CHECK_EQ(recorded.iterations.at({sum, 0, -1}), (Sum{8, 0, 40, 5, 5, 40, 0}));
    CHECK_EQ(recorded.iterations.size(), std::size_t{6});
    CHECK(notices().empty());
  });
}

TEST(an_iteration_that_is_a_scope_beyond_the_frames_is_not_counted) {
  in_process([] {
    Thread& thread = this_thread();
    const RegionName outer = called("outer"), steps = called("steps");
    for (std::uint32_t i = 0; i < Regions::most_frames; ++i) begin_region(thread, outer, 1, OpeningKind::region);
    begin_numbered_iteration(thread, steps, 1, OpeningKind::loop_one_by_one, 3);
    test_clock::go_on(1);
    CHECK_EQ(thread.regions->beyond, 1u);
    end_region(thread, steps, 1);
    CHECK_EQ(thread.regions->beyond, 0u);
    for (std::uint32_t i = 0; i < Regions::most_frames; ++i) end_region(thread, outer, 1);
    CHECK_EQ(thread.regions->depth, 0u);
    CHECK(recorded_by(thread).iterations.empty());
  });
}

TEST(regions_beyond_those_told_apart_are_others_and_no_time_is_lost_or_counted_twice) {
  in_process([] {
    Thread& thread = this_thread();
    constexpr std::uint32_t names = 20'000, apart = most_regions - 2;  // less the program and "main"
    const RegionName main = called("main"), within = called("within");
    begin_slices(test_clock::now());
    begin_region(thread, main, 1, OpeningKind::region);
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < names; ++i) {
        const std::string name = "region " + std::to_string(i);
        begin_region(thread, called(name), 1, OpeningKind::region);
        test_clock::go_on(10);
        if (i >= apart) {  // others within the others
          begin_region(thread, within, 1, OpeningKind::region);
          test_clock::go_on(7);
          end_region(thread, within, 1);
        }
        end_region(thread, called(name), 1);
      }
    }
    pause_counting();
    begin_region(thread, called("one more"), 1, OpeningKind::region);
    begin_region(thread, within, 1, OpeningKind::region);
    end_region(thread, within, 1);
    end_region(thread, called("one more"), 1);
    resume_counting();
    end_region(thread, main, 1);
    const Recorded recorded = recorded_by(thread);
    CHECK_EQ(recorded.times.size(), std::size_t{apart} + 2);
    const std::uint64_t others = 2 * (names - apart);
    const Sum& sum = recorded.times.at({"...others", 0, -1});
    CHECK_EQ(sum, (Sum{2 * others, 0, others * 17, 7, 17, 0, 0}));
    CHECK_EQ(recorded.times.at({"main/region 0", 0, -1}), (Sum{2, 0, 20, 10, 10, 0, 0}));
    const Ticks all = 2 * names * 10 + others * 7;
    CHECK_EQ(recorded.times.at({"main", 0, -1}), (Sum{1, 0, all, all, all, all, 0}));
    const CountedRegions counted = region_names();
    CHECK_EQ(counted.names.size(), std::size_t{most_regions} + 1);
    CHECK(counted.names.back().kind == RegionKind::others);
    CHECK_EQ(notices().size(), 1u);
    finish_slices(thread, now());
    Ticks width = 1, sliced = 0;
    for (const auto& [at, part] : slices_by(thread, width)) sliced += part.second;
    CHECK_EQ(sliced, all);
  });
}

TEST(a_thread_that_ends_closes_its_regions_and_a_later_one_begins_outside_all) {
  in_process([] {
    const Thread* first = nullptr;
    std::thread([&first] {
      first = &this_thread();
      begin_region(this_thread(), called("outer"), 1, OpeningKind::region);
      begin_region(this_thread(), called("steps"), 1, OpeningKind::loop_as_sum);
      begin_iteration(this_thread(), 1);
      test_clock::go_on(5);
    }).join();
    for (int i = 0; i < 50; ++i) {
      std::thread([first] {
        Thread& thread = this_thread();
        CHECK_EQ(&thread, first);
        CHECK_EQ(thread.regions->depth, 0u);
        CHECK_EQ(thread.region(), 0u);
        begin_region(thread, called("outer"), 1, OpeningKind::region);
        test_clock::go_on(2);
      }).join();
    }
    const Recorded recorded = recorded_by(*first);
    Sum outer;
    for (const auto& [place, sum] : recorded.times) {
      if (std::get<0>(place) != "outer") continue;
      outer.calls += sum.calls;
      outer.time += sum.time;
    }
    CHECK_EQ(outer, (Sum{51, 0, 105}));
    CHECK_EQ(recorded.iterations.at({"outer/<steps>", 0, -1}), (Sum{1, 0, 5, 5, 5, 0, 0}));
  });
}

TEST(without_memory_regions_begin_and_end_and_count_again_when_there_is_some) {
  for (int allowed = 0; allowed < 12; ++allowed) {
    in_process([allowed] {
      Thread& thread = this_thread();
      const auto say_all = [&thread](const std::string& prefix) {
        for (int i = 0; i < 40; ++i) {
          const std::string name = prefix + std::to_string(i);
          begin_region(thread, called(name), 1, OpeningKind::loop_one_by_one);
          for (int k = 0; k < 5; ++k) {
            begin_iteration(thread, 1);
            begin_region(thread, called("inner"), 1, OpeningKind::region);
            test_clock::go_on(3);
            record_value(thread, 1, 2.0);
            end_region(thread, called("inner"), 1);
          }
          end_region(thread, called(name), 1);
        }
      };
      {
        const shortage::NoMemory little(allowed);
        say_all("a");
      }
      if (thread.regions != nullptr) {
        CHECK_EQ(thread.regions->depth, 0u);
        CHECK_EQ(thread.regions->beyond, 0u);
      }
      say_all("b");
      CHECK_EQ(thread.regions->depth, 0u);
      const Recorded recorded = recorded_by(thread);
      std::uint64_t inner = 0, outer = 0;
      for (const auto& [place, sum] : recorded.times) {
        if (std::get<0>(place)[1] != 'b') continue;
        const bool is_inner = std::get<0>(place).find('/') != std::string::npos;
        (is_inner ? inner : outer) += sum.calls;
        CHECK_EQ(sum.time, is_inner ? 3 * sum.calls : 15 * sum.calls);
        if (!is_inner) CHECK_EQ(sum.nested, sum.time);
      }
      CHECK_EQ(outer, 40u);
      CHECK_EQ(inner, 200u);
    });
  }
}

TEST(a_pattern_with_many_stars_is_looked_for_in_a_long_name_at_once) {
  in_process([] {
    alarm(20);  // trying all that its stars may stand for would take years
    choose_regions("!*a*a*a*a*a*a*a*a*b,!*c*/*d*", 4, 4);
    Thread& thread = this_thread();
    const std::string name(255, 'a'), other = name.substr(1) + "b", last = "dd";
    for (const std::string* const one : {&name, &other}) {
      begin_region(thread, called(*one), 1, OpeningKind::region);
      CHECK_EQ(thread.region() == uncounted_region, one == &other);
      end_region(thread, innermost, 1);
    }
    begin_region(thread, called("bcb"), 1, OpeningKind::region);
    begin_region(thread, called("add"), 1, OpeningKind::region);
    CHECK_EQ(thread.region(), uncounted_region);
    end_regions(thread);
    begin_region(thread, called(last), 1, OpeningKind::region);
    CHECK(thread.region() != uncounted_region);
  });
}

}  // namespace commlens
