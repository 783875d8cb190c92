// SPDX-License-Identifier: Apache-2.0
#include "core/profile/clocks.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/hot/samples.h"
#include "core/profile/profile.h"
#include "core/profile/waiting.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

// A clock that shows `offset` when the true time is 0. Its machine believes that it has `ns_per_tick`, but it has
// `drift` more.
struct Clock {
  double offset, ns_per_tick, drift;
  double jumps_at = 1e30, by = 0;  // ns

  Ticks at(double ns) const {
    const double jump = ns < jumps_at ? 0 : by;
    return static_cast<Ticks>(std::llround(offset + (ns * (1 + drift) + jump) / ns_per_tick));
  }
};

// Four machines; the clocks differ by seconds and drift by up to 50 ppm.
const std::vector<Clock> clocks{{7e9, 0.5, 0}, {2e9, 0.5, 50e-6}, {1e12, 0.4, -50e-6}, {9e9, 1, 20e-6}};

// A run of eight ranks, two on each machine, on one communicator.
class Run {
 public:
  explicit Run(std::uint64_t seed, std::vector<Clock> of_machines = clocks)
      : random_(seed), clocks_(std::move(of_machines)) {
    profile.comms.resize(4);
    for (std::uint32_t comm = 1; comm < 4; ++comm) profile.comms[comm].size = 8;
    for (int r = 0; r < 8; ++r) {
      Profile::Rank rank;
      rank.facts.rank = r;
      rank.clock = {static_cast<Identity>(100 - machine_of(r)), clock_of(r).ns_per_tick, {}};
      profile.ranks.push_back(rank);
    }
  }

  // A call of the ranks of a communicator at a time, in true ns: rank r enters after late(r) and leaves after it need
  // not wait for others any more.
  template <class Late>
  void call(std::uint32_t comm, std::uint32_t op, double time, const std::vector<int>& ranks, Late late) {
    profile.comms[comm].size = static_cast<int>(ranks.size());
    std::vector<double> entered;
    for (const int r : ranks) entered.push_back(time + late(r));
    const double last = *std::max_element(entered.begin(), entered.end());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const bool is_root = i == 0;
      const bool waits = op == op::MPI_Reduce ? is_root : op != op::MPI_Bcast || !is_root;
      const double until = !waits ? entered[i] : std::max(entered[i], op == op::MPI_Bcast ? entered[0] : last);
      if (waits) waited += until - entered[i];
      const double left = until + 20'000 + static_cast<double>(random_() % 20'000);
      const Clock& clock = clock_of(ranks[i]);
      const Ticks begin = clock.at(entered[i]), end = clock.at(left);
      profile.samples.push_back({comm, op, op == op::MPI_Barrier ? 0u : 4u, 0, ranks[i], number_, begin, end - begin, 0,
                                 is_root ? SampleFlag::root : 0});
    }
    ++number_;
  }

  double uniform(double below) { return std::uniform_real_distribution<double>(0, below)(random_); }
  static int machine_of(int rank) { return rank / 2; }
  const Clock& clock_of(int rank) const { return clocks_[static_cast<std::size_t>(machine_of(rank))]; }

  // Splits what was sampled; returns the lines by rank of the machine.
  std::vector<ClockLine> split_all() {
    profile.clocks = related(clock_facts(profile), profile);
    set_lines(profile, profile.clocks);
    SampledCalls calls = sampled_calls(profile);
    split(profile, calls);
    sum_up(profile, calls);
    std::vector<ClockLine> lines = profile.clocks;
    std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return lines;
  }

  // By how much the line of a machine is wrong at a true time, ns.
  double off(const ClockLine& line, double time) const {
    const Ticks found = line.translated(clock_of(line.rank).at(time)), is = clocks_[0].at(time);
    return std::abs(static_cast<double>(found) - static_cast<double>(is)) * clocks_[0].ns_per_tick;
  }

  const SampledRow& row(std::uint32_t comm, std::uint32_t op) const {
    return *std::find_if(profile.sampled.begin(), profile.sampled.end(),
                         [&](const SampledRow& r) { return r.comm == comm && r.op == op; });
  }

  Profile profile;
  double waited = 0;  // true waiting of all calls, ns

 private:
  std::mt19937_64 random_;
  std::vector<Clock> clocks_;
  std::uint64_t number_ = 0;
};

const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
constexpr double second = 1e9;

std::uint64_t unsplit(const Profile& profile, Unsplit reason) {
  std::uint64_t calls = 0;
  for (const UnsplitRow& row : profile.unsplit) calls += row.reason == reason ? row.calls : 0;
  return calls;
}

}  // namespace

TEST(clocks_that_differ_by_seconds_and_drift_are_related_by_allreduces) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Run run(seed);
    for (int i = 0; i < 300; ++i) {
      run.call(1, op::MPI_Allreduce, i * second, all, [&](int) { return run.uniform(1e6); });
    }
    const std::vector<ClockLine> lines = run.split_all();
    CHECK_EQ(lines.size(), 4u);
    for (const ClockLine& line : lines) {
      CHECK(line.is_known);
      for (const double time : {0.0, 150 * second, 299 * second}) {
        CHECK(run.off(line, time) <= static_cast<double>(line.error) + 2);
      }
      CHECK(line.error < 35'000);  // each call alone leaves 20 us and more to each side
      CHECK_EQ(line.excess, 0u);
      const double drift = clocks[0].drift - run.clock_of(line.rank).drift;
      CHECK(std::abs(line.drift - drift) < 1e-6);
      CHECK_EQ(line.calls, line.rank == 0 ? 0u : 300u);
    }
  }
}

TEST(rooted_collectives_across_machines_are_split_within_the_stated_error) {
  for (const std::uint32_t of : {op::MPI_Bcast, op::MPI_Reduce}) {
    Run run(3);
    for (int i = 0; i < 100; ++i) run.call(1, op::MPI_Barrier, i * second, all, [&](int) { return run.uniform(1e6); });
    run.waited = 0;
    for (int i = 0; i < 100; ++i) {
      // Rank 0 is the root. Either it or the others are late, by 2 ms.
      run.call(1, of, (i + 0.5) * second, all,
               [&](int r) { return (r == 0) == (of == op::MPI_Bcast) ? 2e6 : run.uniform(1e5); });
    }
    run.split_all();
    CHECK_EQ(unsplit(run.profile, Unsplit::machines), 0u);
    CHECK_EQ(unsplit(run.profile, Unsplit::unordered), 0u);
    const SampledRow& row = run.row(1, of);
    CHECK_EQ(row.across, 100u);
    CHECK_EQ(row.by_clock, 100u);
    CHECK(std::abs(static_cast<double>(row.waiting) - run.waited) <= static_cast<double>(row.clock));
    CHECK(static_cast<double>(row.clock) < 0.05 * run.waited);
    CHECK(row.error >= row.clock);
  }
}

TEST(a_machine_that_shares_no_call_with_the_reference_is_related_by_way_of_another) {
  Run run(4);
  const std::vector<int> chain[] = {{0, 1, 2, 3}, {2, 3, 4, 5}, {4, 5, 6, 7}};
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t comm = 1; comm <= 3; ++comm) {
      run.call(comm, op::MPI_Allreduce, i * second + comm * 1e7, chain[comm - 1],
               [&](int) { return run.uniform(1e6); });
    }
  }
  const std::vector<ClockLine> lines = run.split_all();
  for (const ClockLine& line : lines) {
    CHECK(line.is_known);
    CHECK(run.off(line, 50 * second) <= static_cast<double>(line.error) + 2);
  }
  CHECK(lines[1].error < lines[2].error && lines[2].error < lines[3].error);
}

TEST(without_a_call_for_all_the_clocks_are_not_related) {
  Run run(5);
  for (int i = 0; i < 10; ++i) run.call(1, op::MPI_Bcast, i * second, all, [](int) { return 0.0; });
  const std::vector<ClockLine> lines = run.split_all();
  CHECK(lines[0].is_known && !lines[1].is_known && !lines[3].is_known);
  CHECK_EQ(unsplit(run.profile, Unsplit::machines), 10u);
}

TEST(a_clock_that_jumps_is_noticed_and_nothing_is_claimed_by_it) {
  std::vector<Clock> jumping = clocks;
  jumping[1].jumps_at = 50 * second;
  jumping[1].by = second;
  Run run(6, jumping);
  for (int i = 0; i < 100; ++i) {
    run.call(1, op::MPI_Barrier, i * second, all, [](int r) { return r == 0 ? 5e5 : 0.0; });
    run.call(1, op::MPI_Bcast, (i + 0.5) * second, all, [](int r) { return r == 0 ? 5e5 : 0.0; });
  }
  const std::vector<ClockLine> lines = run.split_all();
  CHECK(lines[1].excess > Ns{400'000'000} && lines[1].error >= lines[1].excess);
  CHECK_EQ(lines[2].excess, 0u);
  CHECK_EQ(unsplit(run.profile, Unsplit::machines), 100u);
  // Barriers are split by their durations.
  CHECK_EQ(run.row(1, op::MPI_Barrier).by_clock, 0u);
  CHECK_EQ(run.row(1, op::MPI_Barrier).across, 100u);
}

TEST(blocks_relate_the_clocks_as_all_ranks_together_do) {
  Run run(7);
  for (int i = 0; i < 50; ++i) {
    run.call(1, op::MPI_Allreduce, i * second, all, [&](int) { return run.uniform(1e6); });
    run.call(2, op::MPI_Alltoall, (i + 0.5) * second, {2, 3, 6, 7}, [&](int) { return run.uniform(1e6); });
  }
  ClockFacts merged;
  for (int begin = 0; begin < 8; begin += 3) {
    Profile block = run.profile;
    const auto is_out = [&](int rank) { return rank < begin || rank >= begin + 3; };
    block.ranks.erase(
        std::remove_if(block.ranks.begin(), block.ranks.end(), [&](const auto& r) { return is_out(r.facts.rank); }),
        block.ranks.end());
    block.samples.erase(
        std::remove_if(block.samples.begin(), block.samples.end(), [&](const auto& r) { return is_out(r.rank); }),
        block.samples.end());
    WireWriter out;
    write_clock_facts(out, clock_facts(block));
    const std::vector<char> bytes = out.bytes();
    WireReader in(bytes.data(), bytes.size());
    merge_clock_facts(merged, read_clock_facts(in));
  }
  const std::vector<ClockLine> apart = related(merged, run.profile),
                               together = related(clock_facts(run.profile), run.profile);
  CHECK_EQ(apart.size(), 4u);
  for (std::size_t i = 0; i < apart.size(); ++i) {
    CHECK_EQ(apart[i].from, together[i].from);
    CHECK_EQ(apart[i].to, together[i].to);
    CHECK_EQ(apart[i].error, together[i].error);
    CHECK_EQ(apart[i].calls, together[i].calls);
  }
}

TEST(on_one_machine_there_is_nothing_to_relate) {
  Run run(8);
  for (int i = 0; i < 10; ++i) run.call(1, op::MPI_Barrier, i * second, {0, 1}, [](int r) { return r * 1e6; });
  CHECK(run.split_all().empty());
  CHECK_EQ(run.row(1, op::MPI_Barrier).waiting, 10'000'000u);
}

}  // namespace commlens
