// SPDX-License-Identifier: Apache-2.0
#include "core/state/samples.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/hot/thread.h"
#include "core/state/registry.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

constexpr Key key_of(std::uint32_t comm) { return stratum_key(comm, 7, 4); }

// Makes calls of a stratum as the wrappers do; call i lasts from 10 i to 10 i + 3.
void call(Stratum& stratum, std::uint64_t first, std::uint64_t last) {
  Thread& thread = this_thread();
  for (std::uint64_t i = first; i < last; ++i) {
    thread.current.since = 10 * i;
    if (count_and_check_due(stratum)) take_sample(thread, stratum, 10 * i + 3, 0, true);
  }
}

Stratum& stratum_of(std::uint32_t comm, Identity identity) {
  return *add_stratum(key_of(comm), identity, this_thread().call_cache->unsampled);
}

std::set<std::uint64_t> numbers(const StratumSamples& stratum) {
  std::set<std::uint64_t> all;
  for (const Sample& s : stratum.samples) all.insert(s.number);
  return all;
}

StratumSamples samples_of(std::uint32_t comm) {
  for (StratumSamples& s : samples_here()) {
    if (s.key == key_of(comm)) return s;
  }
  return {};
}

std::set<std::uint64_t> chosen(Identity seed, std::uint32_t level, std::uint64_t calls) {
  std::set<std::uint64_t> all;
  for (std::uint64_t i = 0; i < calls; ++i) {
    if (is_chosen(seed, level, i)) all.insert(i);
  }
  return all;
}

}  // namespace

TEST(a_level_has_one_call_of_each_block_and_all_of_them_are_in_the_level_below) {
  for (const Identity seed : {Identity{1}, Identity{0x123456789abcdef}, ~Identity{0}}) {
    std::set<std::uint64_t> below = chosen(seed, 0, 1 << 12);
    CHECK_EQ(below.size(), std::size_t{1} << 12);
    for (std::uint32_t level = 1; level <= 12; ++level) {
      const std::set<std::uint64_t> now = chosen(seed, level, 1 << 12);
      std::set<std::uint64_t> blocks;
      for (const std::uint64_t n : now) {
        blocks.insert(n >> level);
        CHECK(below.count(n) == 1);
      }
      CHECK_EQ(now.size(), (std::size_t{1} << 12) >> level);
      CHECK_EQ(blocks.size(), now.size());
      below = now;
    }
  }
}

TEST(the_choice_depends_on_the_communicator_and_is_not_periodic) {
  const std::set<std::uint64_t> one = chosen(seed_of(1, key_of(1)), 3, 8000);
  CHECK(one != chosen(seed_of(2, key_of(1)), 3, 8000));
  std::set<std::uint64_t> places;
  for (const std::uint64_t n : one) places.insert(n % 8);
  CHECK_EQ(places.size(), 8u);
}

TEST(every_call_is_sampled_until_there_are_many_then_half_of_them) {
  in_own_process([] {
    Stratum& stratum = stratum_of(1, 11);
    call(stratum, 0, most_samples);
    CHECK_EQ(samples_of(1).samples.size(), std::size_t{most_samples});
    call(stratum, most_samples, 100'000);
    const StratumSamples found = samples_of(1);
    CHECK(found.samples.size() <= most_samples && found.samples.size() >= most_samples / 3);
    CHECK(numbers(found) == chosen(seed_of(11, key_of(1)), found.level, 100'000));
    for (const Sample& s : found.samples) {
      CHECK_EQ(s.entered, 10 * s.number);
      CHECK_EQ(s.left, 10 * s.number + 3);
    }
  });
}

TEST(a_process_with_many_strata_keeps_less_and_its_samples_are_those_of_the_others) {
  in_own_process([] {
    call(stratum_of(1, 11), 0, 20'000);
    const StratumSamples alone = samples_of(1);
    for (std::uint32_t comm = 2; comm < 3000; ++comm) call(stratum_of(comm, comm), 0, 300);
    const StratumSamples pressed = samples_of(1);
    CHECK(pressed.level > alone.level);
    std::size_t kept = 0, with_samples = 0;
    for (const StratumSamples& s : samples_here()) {
      kept += s.samples.size();
      with_samples += s.samples.empty() ? 0 : 1;
    }
    CHECK(kept * sizeof(Sample) <= most_sample_bytes);
    CHECK(with_samples > 1000);
    StratumSamples thinned = alone;
    while (thinned.level < pressed.level) thin_out(thinned, 11, static_cast<std::uint32_t>(thinned.samples.size() - 1));
    CHECK_EQ(thinned.level, pressed.level);
    CHECK(numbers(thinned) == numbers(pressed));
  });
}

TEST(of_the_communicators_of_one_line_the_first_are_sampled_and_then_ever_fewer) {
  in_own_process([] {
    CommRecord record;
    record.kind = CommKind::intra;
    record.view.size = 4;
    record.op = 3;
    record.site = 4711;
    int first = 0, all = 0;
    for (Identity i = 0; i < 100'000; ++i) {
      record.identity = mixed(i + 1);
      const bool is_sampled = begin_sampling(record);
      all += is_sampled ? 1 : 0;
      first += is_sampled && i < 64 ? 1 : 0;
    }
    CHECK_EQ(first, 64);
    CHECK(all > 64 && all < 64 * 14);
    record.view.size = 1;
    CHECK(!begin_sampling(record));
    record.view.size = 4;
    record.kind = CommKind::inter;
    CHECK(!begin_sampling(record));
    record.kind = CommKind::intra;
    record.site = 1;
    choose_sampling("0");
    CHECK(!begin_sampling(record));
  });
}

TEST(calls_that_failed_or_are_not_counted_have_a_number_and_no_sample) {
  in_own_process([] {
    Thread& thread = this_thread();
    Stratum& stratum = stratum_of(1, 11);
    call(stratum, 0, 3);
    CHECK(count_and_check_due(stratum));
    take_sample(thread, stratum, 0, 0, false);
    const std::uint32_t region = thread.region();
    thread.count_in(uncounted_region);
    call(stratum, 4, 6);
    thread.count_in(region);
    call(stratum, 6, 7);
    CHECK(numbers(samples_of(1)) == (std::set<std::uint64_t>{0, 1, 2, 6}));
  });
}

TEST(cleared_samples_are_gone_and_the_numbers_go_on) {
  in_own_process([] {
    Stratum& stratum = stratum_of(1, 11);
    call(stratum, 0, 50);
    forget_samples();
    CHECK(samples_here().empty());
    call(stratum, 50, 52);
    CHECK(numbers(samples_of(1)) == (std::set<std::uint64_t>{50, 51}));
  });
}

TEST(a_communicator_that_is_out_of_step_is_not_sampled_any_more) {
  in_own_process([] {
    CommView comm{};
    comm.index = 1;
    comm.is_sampled = true;
    Stratum& stratum = stratum_of(1, 11);
    call(stratum, 0, 5);
    stop_sampling(comm);
    CHECK(!comm.is_sampled);
    call(stratum, 5, 500);
    CHECK(samples_here().empty());
  });
}

TEST(all_calls_are_sampled_if_that_is_asked_for_and_those_behind_a_barrier_say_so) {
  constexpr std::uint64_t calls = 100'000;  // more than fit into the usual memory
  choose_sampling("barrier");
  note_barriers(70);
  call(stratum_of(70, 1), 0, calls);
  call(stratum_of(71, 1), 0, 1);
  const StratumSamples found = samples_of(70);
  choose_sampling("1");
  CHECK_EQ(found.samples.size(), calls);
  CHECK_EQ(found.level, 0u);
  CHECK_EQ(found.samples.back().number, calls - 1);
  CHECK_EQ(found.samples.back().flags, SampleFlag::barrier);
  CHECK_EQ(samples_of(71).samples.front().flags, 0u);
}

}  // namespace commlens
