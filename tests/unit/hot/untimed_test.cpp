// SPDX-License-Identifier: Apache-2.0
#include "core/hot/untimed.h"

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "core/hot/peers.h"
#include "core/hot/thread.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr unsigned parts = CachedCall::may_skip;

// A cell of its own in the table of this thread, and a cache entry for its calls.  The times of calls are set, not
// measured.
class Calls {
 public:
  explicit Calls(std::uint64_t seed) : thread_(this_thread()) {
    thread_.call_cache->random = seed;
    static std::uint32_t op = 0;
    ++op;
    cell_ = find_cell(thread_.table, make_key(1, op % 300, 5, 0), Site{op});
    entry_.cell = cell_;
    entry_.region = thread_.region();
    entry_.sent = 8;
    mpi_before_ = thread_.mpi;
  }
  // Makes a call as a wrapper does; returns whether it was timed.
  bool call(Ticks spent) {
    if (goes_untimed<parts>(thread_, entry_)) {
      CHECK(is_as_decided<parts>(thread_, entry_));
      entry_.add_untimed<parts | CachedCall::sends>();
      return false;
    }
    add_call(*cell_, spent, 8, 0);
    thread_.mpi += spent;
    thread_.current.since = 1000;
    after_timed(thread_, entry_, parts, *cell_, 1000 + spent);
    return true;
  }
  const Cell& timed() const { return *cell_; }
  Cell untimed() const { return entry_.untimed_out == nullptr ? Cell{} : *entry_.untimed_out; }
  Ticks estimate() const { return cell_->time + untimed().time; }
  double error() const {
    return std::sqrt(std::ldexp(static_cast<double>(untimed().time_max), variance_bits) +
                     static_cast<double>(untimed().time_min));
  }
  Ticks mpi() const { return thread_.mpi - mpi_before_; }
  CachedCall& entry() { return entry_; }

 private:
  Thread& thread_;
  Cell* cell_;
  CachedCall entry_{};
  Ticks mpi_before_;
};

using Cost = std::function<Ticks(std::uint64_t)>;

// Estimates the time of `n` calls again and again, with other seeds.  Checks that the mean is the true time, and that
// the errors are as large as the profile says: at most `slack` and at least `least` times its variance.
void check_estimates(std::uint64_t n, int runs, const Cost& cost, double slack = 1.3, double least = 0) {
  double truth = 0;
  for (std::uint64_t i = 0; i < n; ++i) truth += static_cast<double>(cost(i));
  double sum = 0, squares = 0, said = 0;
  for (int run = 0; run < runs; ++run) {
    Calls calls(static_cast<std::uint64_t>(run) * 77 + 5);
    for (std::uint64_t i = 0; i < n; ++i) calls.call(cost(i));
    CHECK_EQ(calls.timed().calls + calls.untimed().calls, n);
    CHECK(calls.untimed().calls > n / 4);
    CHECK_EQ(calls.mpi(), calls.estimate());
    const double off = static_cast<double>(calls.estimate()) - truth;
    sum += off;
    squares += off * off;
    said += calls.error() * calls.error();
  }
  // The seeds are fixed, so this has one result.  A bias of a quarter of the standard error would be seen.
  const double error_of_mean = std::sqrt(squares) / runs;
  CHECK(std::abs(sum / runs) < 3 * error_of_mean + 1);
  CHECK(squares < slack * said);
  CHECK(squares > least * said);
}

std::uint64_t scattered(std::uint64_t i) { return folded(i + 1, 0x9e3779b97f4a7c15u); }

}  // namespace

TEST(a_rare_call_is_always_timed) {
  Calls calls(1);
  for (std::uint64_t i = 0; i < usual_timed_first; ++i) CHECK(calls.call(100 + i));
  CHECK_EQ(calls.untimed().calls, 0u);
  CHECK_EQ(calls.estimate(), 100 * usual_timed_first + usual_timed_first * (usual_timed_first - 1) / 2);
}

TEST(all_calls_and_bytes_are_counted) {
  Calls calls(2);
  std::uint64_t timed = 0;
  constexpr std::uint64_t n = 100'000;
  for (std::uint64_t i = 0; i < n; ++i) timed += calls.call(50) ? 1 : 0;
  CHECK_EQ(calls.timed().calls, timed);
  CHECK_EQ(calls.timed().calls + calls.untimed().calls, n);
  CHECK_EQ(calls.timed().bytes_sent + calls.untimed().bytes_sent, 8 * n);
  CHECK(timed < n / 15);
}

TEST(every_call_is_timed_when_that_is_asked_for) {
  timed_first = time_every_call;
  Calls calls(3);
  for (std::uint64_t i = 0; i < 10'000; ++i) CHECK(calls.call(i));
  CHECK_EQ(calls.untimed().calls, 0u);
  timed_first = usual_timed_first;
}

TEST(of_each_block_one_call_is_timed) {
  Calls calls(4);
  for (std::uint64_t i = 0; i < 200'000; ++i) calls.call(7);  // all blocks have 64 calls by now
  while (!calls.call(7) || calls.entry().gap(parts).doublings != 6) {
  }
  for (std::uint64_t rest = calls.entry().gap(parts).rest; rest > 0 && !calls.call(7); --rest) {
  }
  std::set<int> places;
  // The rest of the block that has begun, then whole ones.
  std::vector<bool> timed;
  for (int i = 0; i < 64 * 1000; ++i) timed.push_back(calls.call(7));
  std::uint64_t sum = 0;
  int last = -1;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (!timed[i]) continue;
    ++sum;
    if (last >= 0) {
      const int gap = static_cast<int>(i) - last;
      CHECK(gap >= 1 && gap < 128);
      places.insert(gap);
    }
    last = static_cast<int>(i);
  }
  CHECK(sum >= 999 && sum <= 1001);
  CHECK(places.size() > 100);  // all distances but the rarest
}

TEST(a_constant_cost_has_the_error_of_one_block) {
  for (const std::uint64_t n : {std::uint64_t{2000}, std::uint64_t{20'000}, std::uint64_t{300'000}}) {
    Calls calls(n);
    for (std::uint64_t i = 0; i < n; ++i) calls.call(100);
    const double off = std::abs(static_cast<double>(calls.estimate()) - 100.0 * static_cast<double>(n));
    CHECK(off <= 64 * 100);
    CHECK(off < 0.01 * 100 * static_cast<double>(n));
    CHECK(calls.error() < 0.01 * 100 * static_cast<double>(n));
    CHECK(calls.error() > 0);
  }
}

TEST(the_estimate_is_unbiased_if_costs_vary_from_call_to_call) {
  check_estimates(20'000, 200, [](std::uint64_t i) { return 50 + scattered(i) % 1000; }, 1.2, 0.8);
}
TEST(the_estimate_is_unbiased_if_the_cost_grows) {
  // The error of the last block is that of a call when blocks of its size began, which were cheaper.
  check_estimates(20'000, 200, [](std::uint64_t i) { return 50 + i / 10; }, 1.6);
}
TEST(the_estimate_is_unbiased_if_the_cost_falls) {
  check_estimates(20'000, 200, [](std::uint64_t i) { return 4000 - i / 10; });
}
TEST(the_estimate_is_unbiased_whatever_the_period_of_the_application) {
  for (const std::uint64_t period : {2, 3, 8, 64}) {
    check_estimates(20'000, 100, [period](std::uint64_t i) { return i % period == 0 ? 5000 : 20; });
  }
}
TEST(the_estimate_is_unbiased_if_few_calls_take_most_of_the_time) {
  check_estimates(20'000, 400, [](std::uint64_t i) { return scattered(i) % 200 == 0 ? 100'000 : 50; }, 1.2, 0.8);
}

TEST(the_error_is_that_of_a_slow_counter_too) {
  // A call takes two to four of its ticks.
  check_estimates(20'000, 200, [](std::uint64_t i) { return 2 + scattered(i) % 3; }, 1.3, 0.6);
  Calls calls(10);
  std::uint64_t timed = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) timed += calls.call(2 + scattered(i) % 3) ? 1 : 0;
  CHECK(timed < 100'000 / 15);
}
TEST(an_error_of_hours_does_not_overflow) {
  Calls calls(11);
  constexpr Ticks hour = Ticks{1} << 44;
  for (std::uint64_t i = 0; i < 20'000; ++i) calls.call(i % 3 == 0 ? hour : 0);
  const double truth = 20'000.0 / 3 * static_cast<double>(hour);
  CHECK(std::abs(static_cast<double>(calls.estimate()) - truth) < 5 * calls.error());
  CHECK(calls.error() < truth / 10);
}

TEST(a_call_whose_message_is_sampled_is_one_of_the_first_calls_too) {
  constexpr unsigned sending = parts | CachedCall::out_message | CachedCall::messages;
  Thread& thread = this_thread();
  Channel channel{};
  PeerCell peer{};
  peer.channel = &channel;
  CachedCall entry{};
  entry.cell = find_cell(thread.table, make_key(3, 1, 5, thread.region()), 1);
  entry.region = thread.region();
  entry.out = &peer;
  entry.time_all(sending, 1);
  for (int i = 0; i < 2000; ++i) {
    channel.skips = 0;
    CHECK(!goes_untimed<sending>(thread, entry));
    count_timed<sending>(thread, entry, thread.current.since + 5);
  }
  CHECK_EQ(int{entry.gap(sending).turn}, 0);
}

TEST(more_calls_are_timed_while_the_error_is_large) {
  Calls even(8), uneven(8);
  std::uint64_t of_even = 0, of_uneven = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    of_even += even.call(50) ? 1 : 0;
    of_uneven += uneven.call(scattered(i) % 200 == 0 ? 1'000'000 : 50) ? 1 : 0;
  }
  CHECK(of_even < 200'000 / 30);
  CHECK(of_uneven > 200'000 / 10);
}

TEST(a_call_in_another_region_is_timed) {
  Calls calls(9);
  for (std::uint64_t i = 0; i < 100'000; ++i) calls.call(50);
  while (calls.entry().gap(parts).turn < 2) calls.call(50);
  const Gap gap = calls.entry().gap(parts);
  calls.entry().region += 1;
  CHECK(calls.call(50));
  CHECK_EQ(calls.entry().gap(parts).turn, gap.turn);  // it is not one of its block
  calls.entry().region -= 1;
  CHECK(!calls.call(50));
}

TEST(after_the_counters_were_cleared_nothing_is_estimated_for_calls_before) {
  Calls calls(12);
  while (calls.entry().gap(parts).doublings != 6 || calls.entry().gap(parts).turn != 0) calls.call(50);
  const Ticks before = calls.untimed().time;
  calls.entry().freed = CachedCall::never;  // as CallCache::forget() does
  CHECK(calls.call(50));
  CHECK_EQ(calls.untimed().time, before);
  CHECK_EQ(int{calls.entry().gap(parts).doublings}, 0);
}

TEST(the_untimed_calls_of_a_key_have_one_other_key) {
  std::set<Key> all;
  for (std::uint32_t bin = 0; bin <= v_bin; ++bin) {
    if (bin > 64 && bin < null_bin) continue;
    const Key key = make_key(3, 4, bin, 5, true), other = untimed_key(key);
    all.insert(key);
    CHECK(!is_untimed(key));
    CHECK_EQ(timed_key(key), key);
    CHECK_EQ(other != 0, bin < untimed_sizes || bin == null_bin);
    if (other == 0) continue;
    CHECK(is_untimed(other));
    CHECK_EQ(timed_key(other), key);
    CHECK(all.insert(other).second);
    CHECK_EQ(with_bin(other, 0), with_bin(key, 0));
  }
}

}  // namespace commlens
