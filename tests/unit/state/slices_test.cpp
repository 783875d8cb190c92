// SPDX-License-Identifier: Apache-2.0
#include "core/state/slices.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "core/state/freed_comms.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

constexpr Ticks origin = 1'000'000;

struct Call {
  std::uint32_t comm, op;
  Ticks start, end;
  std::uint64_t sent;
};

void make(Thread& thread, const Call& call, Site site = 0) {
  thread.current.since = call.start;
  record(thread, make_key(call.comm, call.op, bin_of(call.sent), 0), site, call.end - call.start, call.sent,
         2 * call.sent);
}

using Where = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // communicator, procedure, slot
struct Sum {
  std::uint64_t calls = 0, sent = 0, received = 0;
  Ticks time = 0;
  bool operator==(const Sum& o) const {
    return calls == o.calls && sent == o.sent && received == o.received && time == o.time;
  }
};

// The model: every call looked at by itself.
std::map<Where, Sum> expected(const std::vector<Call>& calls, Ticks width) {
  std::map<Where, Sum> sums;
  for (const Call& c : calls) {
    const std::uint64_t last = (c.end - origin) / width;
    Sum& at_end = sums[{c.comm, c.op, last}];
    at_end.calls += 1;
    at_end.sent += c.sent;
    at_end.received += 2 * c.sent;
    for (std::uint64_t slot = (c.start - origin) / width; slot <= last; ++slot) {
      const Ticks from = std::max(c.start, origin + slot * width), to = std::min(c.end, origin + (slot + 1) * width);
      sums[{c.comm, c.op, slot}].time += to - from;
    }
  }
  for (auto at = sums.begin(); at != sums.end();) at = at->second == Sum{} ? sums.erase(at) : std::next(at);
  return sums;
}

std::map<Where, Sum> found(const SliceLogContent& sliced) {
  std::map<Where, Sum> sums;
  for (const SliceEntry& e : sliced.entries) {
    Sum& sum = sums[{comm_of_key(e.key), op_of_key(e.key), e.slot}];
    sum.calls += e.calls;
    sum.sent += e.bytes_sent;
    sum.received += e.bytes_received;
    sum.time += e.time;
  }
  for (auto at = sums.begin(); at != sums.end();) at = at->second == Sum{} ? sums.erase(at) : std::next(at);
  return sums;
}

Thread fresh() {
  begin_slices(origin);
  Thread thread{};
  thread.wait_until(1);
  return thread;
}

// Calls of random length at random distance, up to `longest` ticks.
std::vector<Call> random_calls(int n, Ticks longest, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Call> calls;
  Ticks at = origin;
  for (int i = 0; i < n; ++i) {
    at += random() % longest;
    const Ticks end = at + random() % (random() % longest + 1);
    calls.push_back({static_cast<std::uint32_t>(random() % 5), static_cast<std::uint32_t>(random() % 3 + 1), at, end,
                     random() % 1000});
    at = end;
  }
  return calls;
}

}  // namespace

TEST(slices_are_those_of_a_model_however_long_the_run) {
  for (const Ticks longest : {Ticks{100}, Ticks{10'000}, Ticks{1} << 20, Ticks{1} << 24, Ticks{1} << 30}) {
    Thread thread = fresh();
    const std::vector<Call> calls = random_calls(3000, longest, static_cast<unsigned>(longest));
    for (const Call& call : calls) make(thread, call, call.sent % 7);
    finish_slices(thread, 0);
    const SliceLogContent sliced = added_up({slices_of(thread)});
    CHECK(found(sliced) == expected(calls, sliced.width));
    for (const SliceEntry& entry : sliced.entries) CHECK(entry.slot < max_slices);
    // As fine as it can be, and as it may: 65,536 ticks a cell.
    const Ticks run = calls.back().end - origin, half = sliced.width / 2;
    CHECK(half < first_slice_width || run / half >= max_slices || half < thread.table.used << 16);
    CHECK(sliced.width >= thread.table.used << 16 || run < sliced.width);
  }
}

TEST(one_call_that_is_longer_than_all_slices) {
  Thread thread = fresh();
  const std::vector<Call> calls = {{1, 1, origin + 10, origin + 20, 1},
                                   {2, 1, origin + 30, origin + first_slice_width * max_slices * 1000, 5},
                                   {1, 1, origin + first_slice_width * max_slices * 1000 + 1,
                                    origin + first_slice_width * max_slices * 1000 + 2, 1}};
  for (const Call& call : calls) make(thread, call);
  finish_slices(thread, 0);
  const SliceLogContent sliced = added_up({slices_of(thread)});
  CHECK(found(sliced) == expected(calls, sliced.width));
}

TEST(a_long_run_takes_no_more_memory_than_a_short_one) {
  Thread thread = fresh();
  Ticks at = origin;
  for (int doubling = 0; doubling < 20; ++doubling) {
    const Ticks step = (first_slice_width << doubling) / 4;
    for (int i = 0; i < 1000; ++i, at += step) make(thread, {1, 1, at, at + step / 2, 1});
  }
  int blocks = 0;
  for (const SliceBlock* b = thread.slices.newest; b != nullptr; b = b->next) ++blocks;
  for (const SliceBlock* b = thread.slices.spare; b != nullptr; b = b->next) ++blocks;
  CHECK(blocks <= 3);
}

TEST(with_many_communicators_slices_are_wider_and_still_those_of_a_model) {
  Thread thread = fresh();
  std::vector<Call> calls;
  constexpr std::uint32_t comms = 2000;
  Ticks at = origin;
  for (int round = 0; round < 120; ++round) {
    for (std::uint32_t comm = 1; comm <= comms; ++comm, at += first_slice_width / comms)
      calls.push_back({comm, 1, at, at + 10, 8});
  }
  std::uint64_t longest = 0;
  for (const Call& call : calls) {
    make(thread, call);
    longest = std::max(longest, thread.slices.entries);
  }
  finish_slices(thread, 0);
  const SliceLogContent sliced = added_up({slices_of(thread)});
  CHECK(found(sliced) == expected(calls, sliced.width));
  CHECK(longest < 20 * comms);  // 120 * comms if nothing were done about it
  CHECK(sliced.entries.back().slot >= 4 && sliced.width > first_slice_width);
}

TEST(communicators_that_come_and_go_leave_slices_of_a_model_and_little_memory) {
  in_own_process([] {
    begin_slices(origin);
    Thread& thread = this_thread();
    std::vector<Call> calls;
    std::mt19937_64 random(5);
    constexpr std::uint32_t comms = 3000, stays = comms + 1;
    Ticks at = origin;
    const auto call = [&](std::uint32_t comm, std::uint32_t op) {
      at += random() % (first_slice_width / 50);
      const Ticks end = at + random() % (first_slice_width / (random() % 30 == 0 ? 1 : 50));
      calls.push_back({comm, op, at, end, random() % 100});
      make(thread, calls.back(), random() % 2);
      at = end;
    };
    for (std::uint32_t comm = 1; comm <= comms; ++comm) {
      for (std::uint32_t op = 1; op <= 3; ++op) call(comm, op);
      call(stays, 1);
      if (comm > 20) comm_freed(comm - 20);
      if (comm > 20 && comm % 4 == 0) call(comm - 20, 1 + comm % 3);
      CHECK(thread.slices.capacity <= 2048);
    }
    CHECK(thread.table.left_out > comms);
    finish_slices(thread, 0);
    const SliceLogContent sliced = added_up({slices_of(thread)});
    CHECK(found(sliced) == expected(calls, sliced.width));
  });
}

// Memory is missing for one moment, at the end of a slice, which a region in a callback of an MPI call notices.
TEST(no_call_is_in_two_slices_after_memory_was_short_inside_a_callback) {
  for (int allowed = 0; allowed < 3; ++allowed) {
    Thread thread = fresh();
    std::vector<Call> calls;
    const auto call = [&](std::uint32_t comm, Ticks at) {
      calls.push_back({comm, 1, at, at + 10, 8});
      make(thread, calls.back());
    };
    constexpr std::uint32_t comms = 100;  // more than fit into the first table of sums
    for (std::uint32_t comm = 1; comm <= comms; ++comm) call(comm, origin + comm * 100);
    thread.outermost = reinterpret_cast<char*>(&thread);
    {
      const shortage::NoMemory none(allowed);
      end_slice_at_region(thread, origin + first_slice_width + 10);
    }
    thread.outermost = nullptr;
    for (Ticks slot = 1; slot < 5; ++slot) {
      for (std::uint32_t comm = 1; comm <= comms; ++comm)
        call(comm, origin + slot * first_slice_width + comm * 100 + 20);
    }
    finish_slices(thread, 0);
    std::map<Where, Sum> right = expected(calls, first_slice_width);
    for (const auto& [where, sum] : found(slices_of(thread))) CHECK(sum.calls <= right[where].calls);
  }
}

// A profile is collected twice, and the first time there is no memory for a moment.
TEST(slices_end_for_good_if_there_is_no_memory_for_the_last_one) {
  for (int allowed = 0; allowed < 3; ++allowed) {
    Thread thread = fresh();
    constexpr std::uint32_t comms = 100;
    for (std::uint32_t comm = 1; comm <= comms; ++comm)
      make(thread, {comm, 1, origin + comm * 100, origin + comm * 100 + 10, 8});
    const int before = shortage::refusals();
    {
      const shortage::NoMemory none(allowed);
      finish_slices(thread, 0);
    }
    const bool was_refused = shortage::refusals() != before;
    finish_slices(thread, 0);
    std::map<std::uint32_t, std::uint64_t> in_slices;
    for (const SliceEntry& e : slices_of(thread).entries) in_slices[comm_of_key(e.key)] += e.calls;
    for (const auto& [comm, n] : in_slices) CHECK_EQ(n, 1u);
    CHECK_EQ((thread.slices.slot & slices_ended) != 0, was_refused);
    CHECK(static_cast<std::uint32_t>(thread.slices.slot) < max_slices);  // messages are counted in it
  }
}

// The width of the slices doubles in vain: those that are there keep theirs.
TEST(slices_keep_their_width_if_there_is_no_memory_for_wider_ones) {
  Thread thread = fresh();
  std::vector<Call> calls;
  for (Ticks slot = 0; slot < max_slices; ++slot) {
    calls.push_back({1, 1, origin + slot * first_slice_width + 100, origin + slot * first_slice_width + 200, 8});
    make(thread, calls.back());
  }
  {
    const shortage::NoMemory none;
    make(thread, {1, 1, origin + max_slices * first_slice_width + 5, origin + max_slices * first_slice_width + 6, 8});
  }
  finish_slices(thread, 0);
  const SliceLogContent sliced = added_up({slices_of(thread)});
  CHECK_EQ(sliced.width, first_slice_width);
  CHECK(found(sliced) == expected(calls, sliced.width));
}

TEST(bytes_of_a_request_count_when_it_is_completed) {
  Thread thread = fresh();
  make(thread, {1, 1, origin + 10, origin + 20, 0});
  make(thread, {1, 1, origin + 3 * first_slice_width, origin + 3 * first_slice_width + 5, 0});
  find_cell(thread.table, make_key(1, 1, 0, 0), 0)->bytes_received += 77;
  finish_slices(thread, 0);
  const std::map<Where, Sum> sums = found(slices_of(thread));
  CHECK_EQ(sums.at({1, 1, 0}).received, 0u);
  CHECK_EQ(sums.at({1, 1, 3}).received, 77u);
}

TEST(threads_of_different_width_add_up) {
  Thread a = fresh(), b = fresh();
  std::vector<Call> all;
  const std::vector<Call> of_a = random_calls(1000, 1 << 16, 1), of_b = random_calls(1000, 1 << 22, 2);
  for (const Call& call : of_a) make(a, call);
  for (const Call& call : of_b) make(b, call);
  finish_slices(a, 0);
  finish_slices(b, 0);
  all = of_a;
  all.insert(all.end(), of_b.begin(), of_b.end());
  const SliceLogContent sliced = added_up({slices_of(a), slices_of(b)});
  CHECK(found(sliced) == expected(all, sliced.width));
}

TEST(calls_before_the_beginning_are_in_the_first_slice) {
  begin_slices(0);
  Thread thread{};
  thread.wait_until(1);
  make(thread, {1, 1, 10, 20, 1});
  begin_slices(origin);
  make(thread, {1, 1, origin + 10, origin + 20, 1});
  finish_slices(thread, 0);
  const std::map<Where, Sum> sums = found(slices_of(thread));
  CHECK_EQ(sums.size(), 1u);
  CHECK_EQ(sums.at({1, 1, 0}).calls, 2u);
}

}  // namespace commlens
