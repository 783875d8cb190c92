// SPDX-License-Identifier: Apache-2.0
#include "core/profile/waiting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "core/base/wire.h"
#include "core/hot/samples.h"
#include "core/profile/profile.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr Ns late_by = 50'000;

// A profile of ranks that share one communicator, index 1.  A tick lasts half a nanosecond.
Profile profile_of(int ranks, const std::vector<int>& machines, int first = 0, int end = -1) {
  Profile profile;
  profile.comms.resize(2);
  profile.comms[1].size = ranks;
  for (int r = first; r < (end < 0 ? ranks : end); ++r) {
    Profile::Rank rank;
    rank.facts.rank = r;
    rank.clock = {static_cast<Identity>(machines[static_cast<std::size_t>(r)] + 1), 0.5, {}};
    profile.ranks.push_back(rank);
  }
  return profile;
}

// Entry and duration of each rank in one call, in nanoseconds.
struct Times {
  std::vector<Ns> entered, spent;
};

void add(Profile& profile, std::uint32_t op, std::uint32_t bin, std::uint64_t number, const Times& times,
         std::uint32_t flags = 0) {
  for (const Profile::Rank& r : profile.ranks) {
    const auto i = static_cast<std::size_t>(r.facts.rank);
    const std::uint32_t root = i == 0 ? SampleFlag::root : 0;
    profile.samples.push_back(
        {1, op, bin, 0, r.facts.rank, number, 2 * times.entered[i], 2 * times.spent[i], 0, flags | root});
  }
}

// Adds the counters of all calls: `times` as many as were sampled.
void count_all(Profile& profile, std::uint32_t op, std::uint32_t bin, std::uint64_t times) {
  std::map<int, Profile::Row> rows;
  for (const SampleRow& s : profile.samples) {
    Profile::Row& row = rows[s.rank];
    row.rank = s.rank;
    row.calls += times;
    row.time += s.spent / 2 * times;
  }
  profile.keys.push_back({1, op, bin, 0, 0, 0, 0, 0, 0});
  for (const auto& [rank, row] : rows) profile.rows.push_back(row);
}

void split_all(Profile& profile) {
  SampledCalls calls = sampled_calls(profile);
  split(profile, calls);
  sum_up(profile, calls);
}

Ns waited(const Profile& profile, int rank) {
  Ns sum = 0;
  for (const WaitingRow& row : profile.waiting) sum += row.rank == rank ? row.waiting : 0;
  return sum;
}

std::uint64_t unsplit(const Profile& profile, Unsplit reason) {
  std::uint64_t calls = 0;
  for (const UnsplitRow& row : profile.unsplit) calls += row.reason == reason ? row.calls : 0;
  return calls;
}

// Random calls in which everybody leaves after the last entry.
Times random_times(std::mt19937_64& random, int ranks) {
  Times times;
  for (int r = 0; r < ranks; ++r) times.entered.push_back(10'000'000 + random() % 1'000'000);
  const Ns last = *std::max_element(times.entered.begin(), times.entered.end());
  for (int r = 0; r < ranks; ++r) {
    times.spent.push_back(last - times.entered[static_cast<std::size_t>(r)] + 2000 + random() % 5000);
  }
  return times;
}

}  // namespace

TEST(in_an_allreduce_each_rank_waits_until_the_last_has_entered) {
  Profile profile = profile_of(3, {0, 0, 0});
  add(profile, op::MPI_Allreduce, 4, 0, {{1000, 5000, 1000 + late_by}, {late_by + 700, late_by, 500}});
  split_all(profile);
  CHECK_EQ(waited(profile, 0), late_by);
  CHECK_EQ(waited(profile, 1), late_by - 4000);
  CHECK_EQ(waited(profile, 2), 0u);
  CHECK_EQ(profile.sampled.size(), 1u);
  const SampledRow& row = profile.sampled.at(0);
  CHECK_EQ(row.waiting, 2 * late_by - 4000);
  CHECK_EQ(row.time, 2 * late_by + 1200);
  CHECK_EQ(row.spread, late_by);
  CHECK_EQ(row.late, late_by - 4000);
  const auto of_last =
      std::find_if(profile.waiting.begin(), profile.waiting.end(), [](const WaitingRow& r) { return r.last != 0; });
  CHECK(of_last != profile.waiting.end() && of_last->rank == 2 && of_last->last == 1);
}

TEST(in_a_broadcast_the_others_wait_for_the_root_and_in_a_reduce_the_root_for_the_others) {
  Profile bcast = profile_of(3, {0, 0, 0});
  add(bcast, op::MPI_Bcast, 4, 0, {{20'000, 10'000, 90'000}, {300, 11'000, 400}});
  split_all(bcast);
  CHECK_EQ(waited(bcast, 0), 0u);
  CHECK_EQ(waited(bcast, 1), 10'000u);
  CHECK_EQ(waited(bcast, 2), 0u);  // later than the root
  Profile reduce = profile_of(3, {0, 0, 0});
  add(reduce, op::MPI_Reduce, 4, 0, {{20'000, 10'000, 90'000}, {71'000, 11'000, 400}});
  split_all(reduce);
  CHECK_EQ(waited(reduce, 0), 70'000u);
  CHECK_EQ(waited(reduce, 1) + waited(reduce, 2), 0u);
}

TEST(behind_a_barrier_all_wait_for_the_last_in_every_collective) {
  for (const std::uint32_t op : {op::MPI_Bcast, op::MPI_Reduce, op::MPI_Scan, op::MPI_Alltoallv}) {
    Profile profile = profile_of(3, {0, 0, 0});
    add(profile, op, 4, 0, {{1000, 5000, 1000 + late_by}, {late_by + 700, late_by, 500}},
        SampleFlag::barrier | SampleFlag::empty);
    split_all(profile);
    CHECK_EQ(waited(profile, 0), late_by);
    CHECK_EQ(waited(profile, 1), late_by - 4000);
    CHECK_EQ(waited(profile, 2), 0u);
    CHECK_EQ(profile.unsplit.size(), 0u);
  }
}

TEST(a_fence_is_split_like_a_barrier_unless_somebody_left_before_the_last_entered) {
  Profile profile = profile_of(2, {0, 0});
  add(profile, op::MPI_Win_fence, 0, 0, {{1000, 1000 + late_by}, {late_by + 700, 500}});
  add(profile, op::MPI_Win_fence, 0, 1, {{200'000, 200'000 + late_by}, {700, 500}});
  split_all(profile);
  CHECK_EQ(waited(profile, 0), late_by);
  CHECK_EQ(waited(profile, 1), 0u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 1u);
  CHECK(!is_for_all(op::MPI_Win_fence));
}

TEST(across_machines_the_shortest_duration_is_that_of_the_last) {
  Profile profile = profile_of(3, {0, 1, 1});
  // The clock of the first machine is a second ahead.
  add(profile, op::MPI_Barrier, 0, 0, {{1'000'000'000, 5000, 30'000}, {60'000, 26'000, 1000}});
  add(profile, op::MPI_Bcast, 4, 0, {{1'000'000'000, 5000, 30'000}, {60'000, 26'000, 1000}});
  split_all(profile);
  CHECK_EQ(waited(profile, 0), 59'000u);
  CHECK_EQ(waited(profile, 1), 25'000u);
  CHECK_EQ(waited(profile, 2), 0u);
  CHECK_EQ(profile.sampled.at(0).across, 1u);
  CHECK_EQ(unsplit(profile, Unsplit::machines), 1u);
}

TEST(what_cannot_be_split_is_counted_by_its_reason) {
  Profile profile = profile_of(2, {0, 0});
  const Times good{{1000, 9000}, {9000, 1000}};
  add(profile, op::MPI_Allreduce, 0, 0, good);                                  // no data
  add(profile, op::MPI_Alltoallv, v_bin, 0, good, SampleFlag::empty);           // an empty block
  add(profile, op::MPI_Scan, 4, 0, good);                                       // a prefix sum
  add(profile, op::MPI_Allreduce, 4, 0, {{1000, 90'000}, {200, 1000}});         // left before the last entered
  add(profile, op::MPI_Barrier, 0, 0, good);                                    // can be split
  profile.samples.push_back({1, op::MPI_Barrier, 0, 0, 0, 1, 5000, 10, 0, 0});  // of one member only
  split_all(profile);
  CHECK_EQ(unsplit(profile, Unsplit::no_data), 2u);
  CHECK_EQ(unsplit(profile, Unsplit::prefix), 1u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 1u);
  CHECK_EQ(unsplit(profile, Unsplit::members), 1u);
  CHECK_EQ(profile.sampled.size(), 1u);
}

TEST(blocks_of_ranks_that_are_merged_give_what_all_ranks_give_together) {
  std::mt19937_64 random(5);
  constexpr int ranks = 7;
  const std::vector<int> machines{0, 0, 0, 0, 0, 0, 0};
  Profile all = profile_of(ranks, machines);
  std::vector<Profile> blocks{profile_of(ranks, machines, 0, 2), profile_of(ranks, machines, 2, 6),
                              profile_of(ranks, machines, 6, 7)};
  for (std::uint64_t n = 0; n < 200; ++n) {
    const Times times = random_times(random, ranks);
    const std::uint32_t of = n % 3 == 0 ? op::MPI_Reduce : n % 3 == 1 ? op::MPI_Scatter : op::MPI_Alltoall;
    add(all, of, 5, n, times);
    for (Profile& block : blocks) add(block, of, 5, n, times);
  }
  SampledCalls merged;
  for (const Profile& block : blocks) {
    WireWriter out;
    write_calls(out, sampled_calls(block));
    const std::vector<char> bytes = out.bytes();
    WireReader in(bytes.data(), bytes.size());
    add_calls(merged, read_sampled_calls(in));
  }
  SampledCalls together = sampled_calls(all);
  CHECK_EQ(merged.size(), together.size());
  split(all, together);
  for (Profile& block : blocks) split(block, merged);
  for (std::size_t i = 0; i < merged.size(); ++i) {
    CHECK_EQ(merged[i].waiting, together[i].waiting);
    CHECK_EQ(merged[i].time, together[i].time);
    CHECK_EQ(late_in(merged[i]).rank, late_in(together[i]).rank);
    CHECK_EQ(late_in(merged[i]).late, late_in(together[i]).late);
  }
}

TEST(the_standard_error_is_that_of_a_model_and_nothing_if_all_calls_were_sampled) {
  std::mt19937_64 random(6);
  constexpr int ranks = 4;
  constexpr std::uint64_t samples = 100;
  for (const std::uint64_t times : {std::uint64_t{1}, std::uint64_t{8}}) {
    Profile profile = profile_of(ranks, {0, 0, 0, 0});
    std::vector<Times> all;
    for (std::uint64_t n = 0; n < samples; ++n) {
      all.push_back(random_times(random, ranks));
      add(profile, op::MPI_Allreduce, 4, n, all.back());
    }
    count_all(profile, op::MPI_Allreduce, 4, times);
    split_all(profile);
    const SampledRow& row = profile.sampled.at(0);
    CHECK_EQ(row.of, samples * times);
    if (times == 1) {
      CHECK(row.has_error && row.error == 0);
      continue;
    }
    double squares = 0;
    for (std::size_t n = 0; n < samples; ++n) {
      double residual = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        double spent = 0, waiting = 0;
        const auto wait = [&](const Times& t) {
          return static_cast<double>(*std::max_element(t.entered.begin(), t.entered.end()) - t.entered[r]);
        };
        for (const Times& t : all) {
          spent += static_cast<double>(t.spent[r]);
          waiting += wait(t);
        }
        residual += 8 * (wait(all[n]) - waiting / spent * static_cast<double>(all[n].spent[r]));
      }
      squares += residual * residual;
    }
    const double error = std::sqrt((1 - 1.0 / 8) * samples / (samples - 1.0) * squares);
    CHECK(std::abs(static_cast<double>(row.error) - error) < 0.01 * error);
  }
}

}  // namespace commlens
