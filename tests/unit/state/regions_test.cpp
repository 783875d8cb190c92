// SPDX-License-Identifier: Apache-2.0
#include "core/state/regions.h"

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/hot/thread.h"
#include "core/state/counted.h"
#include "core/state/notices.h"
#include "core/state/processor_use.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

std::string numbered(const char* name, std::uint32_t number) { return name + std::to_string(number); }

// What was said of this kind; empty: nothing.
std::string said(Notice kind) {
  for (const NoticeText& notice : notices()) {
    if (notice.kind == kind) return notice.text;
  }
  return "";
}

// Counted calls of a thread; in regions: how often one ended.
std::uint64_t calls_of(const Thread& thread) {
  std::uint64_t calls = 0;
  each_cell(thread.table, [&calls](const Cell& cell) { calls += cell.calls; });
  return calls;
}
std::uint64_t ends_of(const Thread& thread) {
  std::uint64_t ends = 0;
  each_cell(thread.regions->cells, [&ends](const RegionCell& cell) { ends += cell.calls; });
  return ends;
}

void live(Thread& thread, int times) {
  const RegionName name{identity_of_name("work", 4), "work", 4};
  for (int i = 0; i < times; ++i) {
    begin_region(thread, name, 1, OpeningKind::region);
    record(thread, make_key(2, 3, 4, 0), 5, 10, 0, 0);
    end_region(thread, name, 1);
  }
}

TEST(handles_beyond_the_most_are_one_that_says_so) {
  in_own_process([] {
    std::set<const Name*> handles;
    for (std::uint32_t i = 0; i < most_names; ++i) handles.insert(name_of(numbered("name ", i).c_str()));
    CHECK_EQ(handles.size(), std::size_t{most_names});
    CHECK_EQ(notices().size(), 0u);
    const Name* const other = name_of("one more");
    CHECK_EQ(other->text, std::string("...others"));
    CHECK_EQ(name_of("and another"), other);
    CHECK_EQ(handles.count(other), 0u);
    // A loop in C++ begins by its name and ends by its handle.
    Thread& thread = this_thread();
    begin_region(thread, {identity_of_name("one more", 8), "one more", 8}, 1, OpeningKind::loop_as_sum);
    end_region(thread, {other->identity, other->text, other->bytes}, 1);
    CHECK_EQ(thread.regions->depth, 0u);
    CHECK_EQ(name_of("name 0")->text, std::string("name 0"));  // those that are known stay
    CHECK_EQ(said(Notice::names), "more than 65536 handles: regions of all others count as \"...others\"");
  });
}

TEST(a_name_has_one_handle_whoever_asks_first) {
  in_own_process([] {
    constexpr std::uint32_t names = 2000;
    constexpr std::size_t askers = 4;
    std::vector<std::vector<const Name*>> found(askers, std::vector<const Name*>(names));
    std::vector<std::thread> threads;
    std::atomic<bool> go{false};
    for (std::size_t asker = 0; asker < askers; ++asker) {
      threads.emplace_back([&found, &go, asker] {
        while (!go.load()) {
        }
        for (std::uint32_t i = 0; i < names; ++i) found[asker][i] = name_of(numbered("name ", i).c_str());
      });
    }
    go.store(true);
    for (std::thread& thread : threads) thread.join();
    for (std::uint32_t i = 0; i < names; ++i) {
      CHECK_EQ(found[0][i]->text, numbered("name ", i));
      for (const std::vector<const Name*>& by : found) CHECK_EQ(by[i], found[0][i]);
    }
    CHECK_EQ(std::set<const Name*>(found[0].begin(), found[0].end()).size(), std::size_t{names});
  });
}

TEST(values_of_metrics_beyond_the_most_are_counted_as_others) {
  in_own_process([] {
    std::set<std::uint64_t> numbers;
    for (std::uint32_t i = 1; i < most_metrics; ++i) numbers.insert(metric_of(numbered("q", i).c_str(), "J"));
    CHECK_EQ(numbers.size(), std::size_t{most_metrics} - 1);
    CHECK_EQ(notices().size(), 0u);
    const std::uint64_t other = metric_of("one more", "J");
    CHECK_EQ(other, std::uint64_t{most_metrics});
    CHECK_EQ(metric_of("and another", "W"), other);
    CHECK_EQ(metric_of("q7", "J"), metric_of("q7", "J"));
    CHECK_EQ(numbers.count(metric_of("q7", "J")), 1u);
    CHECK_EQ(said(Notice::metrics), "more than 1023 metrics: the values of all others count as \"...others\"");
    const CountedRegions counted = region_names();
    CHECK_EQ(counted.metrics.size(), std::size_t{most_metrics} + 1);
    CHECK_EQ(counted.metrics.back().name, "...others");
    CHECK_EQ(counted.metrics.back().unit, "mixed");
    CHECK_EQ(counted.metrics[1].name, "q1");
  });
}

TEST(tags_beyond_the_most_are_left_out_and_it_is_said) {
  in_own_process([] {
    Thread& thread = this_thread();
    for (std::uint32_t i = 0; i < most_tags; ++i) tag(thread, "step", std::to_string(i).c_str());
    tag(thread, "step", "7");  // known
    CHECK_EQ(notices().size(), 0u);
    tag(thread, "step", "one more");
    CHECK_EQ(region_names().tags.size(), std::size_t{most_tags});
    CHECK_EQ(said(Notice::tags), "more than 4096 tags: all others are left out, such as \"step\" = \"one more\"");
  });
}

TEST(a_reset_by_another_thread_forgets_what_a_thread_counted_before_and_keeps_what_it_counts_later) {
  in_own_process([] {
    Thread& mine = this_thread();
    std::atomic<int> turn{0};
    const auto wait_for = [&turn](int which) {
      while (turn.load() != which) {
      }
    };
    Thread* theirs = nullptr;
    std::thread other([&] {
      theirs = &this_thread();
      live(*theirs, 3);
      turn.store(1);
      wait_for(2);
      live(*theirs, 5);
      CHECK_EQ(calls_of(*theirs), 5u);
      CHECK_EQ(ends_of(*theirs), 5u);
      turn.store(3);
      wait_for(4);
    });
    live(mine, 7);
    wait_for(1);
    forget_counted();
    CHECK_EQ(calls_of(mine), 0u);
    live(mine, 2);
    turn.store(2);
    wait_for(3);
    CHECK_EQ(calls_of(mine), 2u);
    turn.store(4);
    other.join();
    // A thread that is no more, and one that says nothing any more, forget when the profile is made.
    forget_counted();
    const Registry registry;
    const Counted counted = counted_here(registry, now());
    std::uint64_t calls = counted.lost;
    for (const auto& [key, cell] : counted.cells) calls += cell.calls;
    CHECK_EQ(calls, 0u);
    CHECK_EQ(counted.regions.times.size(), 0u);
  });
}

TEST(a_thread_that_only_records_values_forgets_before_its_next_value) {
  in_own_process([] {
    region_limits.values = 8;
    const std::uint64_t metric = metric_of("energy", "J");
    std::atomic<int> turn{0};
    const auto wait_for = [&turn](int which) {
      while (turn.load() != which) {
      }
    };
    this_thread();
    std::thread other([&] {
      record_in_series(this_thread(), metric, 1000);
      turn.store(1);
      wait_for(2);
      for (const double value : {1.0, 2.0, 4.0}) record_in_series(this_thread(), metric, value);
    });
    wait_for(1);
    forget_counted();
    // New after the reset: it has nothing to clear.
    std::thread late([&] {
      record_value(this_thread(), metric, 8);
      CHECK_EQ(this_thread().clears, clears.load());
    });
    late.join();
    turn.store(2);
    other.join();
    const Registry registry;
    const Counted counted = counted_here(registry, now());
    CHECK_EQ(counted.regions.values.size(), 1u);
    for (const auto& [key, value] : counted.regions.values) {
      CHECK_EQ(value.count, 4u);
      CHECK(value.sum == 15 && value.min == 1 && value.max == 8);
    }
    std::size_t stored = 0;
    for (const auto& [of, series] : counted.regions.series) stored += series.size();
    CHECK_EQ(stored, 3u);
  });
}

TEST(use_of_the_cpus_counts_from_the_last_clearing_and_not_in_pauses) {
  in_own_process([] {
    constexpr Ns pause = 40'000'000, counted = 20'000'000;
    const auto burn = [](Ns cpu) {
      const ProcessorUse begin = processor_use();
      while ((processor_use() - begin).cpu < cpu) {
      }
    };
    const ProcessorUse begin = counted_use();
    CHECK_EQ(forgotten_use().cpu, 0u);
    pause_counting();
    const ProcessorUse paused = counted_use();
    burn(pause);
    CHECK_EQ(counted_use().cpu, paused.cpu);
    CHECK_EQ(counted_use().preempted, paused.preempted);
    resume_counting();
    CHECK((counted_use() - begin).cpu < pause);
    forget_counted();
    burn(counted);
    const ProcessorUse use = counted_use() - later(begin, forgotten_use());
    CHECK(use.cpu >= counted && use.cpu < counted + pause);
    CHECK_EQ((forgotten_use() - counted_use()).cpu, 0u);
  });
}

}  // namespace
}  // namespace commlens
