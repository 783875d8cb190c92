// SPDX-License-Identifier: Apache-2.0
#include "core/state/online.h"

#include <functional>
#include <set>
#include <thread>

#include "core/hot/peers.h"
#include "core/state/peers.h"
#include "core/state/regions.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

using Values = std::vector<std::uint64_t>;

// Rank 1 of a world of 4, and ranks 1 and 3 of it as a pair, where it comes second.
constexpr std::uint32_t world = 1, pair = 2, freed = 3;
const MemberRanks of_world{world, 1, {0, 1, 2, 3}};
const MemberRanks of_pair{pair, 1, {3, 1}};

std::set<std::uint32_t> alive;
int asked = 0;

std::optional<MemberRanks> members_of(std::uint32_t comm) {
  ++asked;
  if (alive.count(comm) == 0) return std::nullopt;
  MemberRanks found = comm == world ? of_world : of_pair;
  found.comm = comm;
  return found;
}

std::int32_t rank_in_world(std::uint32_t comm, std::uint32_t peer) noexcept {
  return comm == world ? of_world.world[peer] : of_pair.world[peer];
}

// What is counted belongs to the process.
void alone(const std::function<void()>& body) {
  in_own_process([&body] {
    choose_matrix("p2p", "total", 1000);
    ask_for_world_ranks(rank_in_world);
    ask_for_members(members_of);
    alive = {world, pair};
    asked = 0;
    body();
  });
}

void sends(std::uint32_t comm, int peer, std::uint64_t bytes) {
  count_message(this_thread(), Flow::sent, comm, 0, peer, bytes);
}

constexpr Selection sent_anywhere{Flow::sent, Measure::messages, Breadth::everywhere};
constexpr Selection bytes_anywhere{Flow::sent, Measure::bytes, Breadth::everywhere};
constexpr Selection sent_here{Flow::sent, Measure::messages, Breadth::here};
constexpr Selection shared{Flow::share, Measure::messages, Breadth::everywhere};
constexpr Selection bytes_shared{Flow::share, Measure::bytes, Breadth::everywhere};

}  // namespace

TEST(messages_in_any_communicator_count_for_the_process_they_go_to) {
  alone([] {
    Watch anywhere(sent_anywhere, of_world), bytes(bytes_anywhere, of_world), here(sent_here, of_pair),
        to_pair(sent_anywhere, of_pair);
    for (Watch* w : {&anywhere, &bytes, &here, &to_pair}) w->start();
    sends(world, 3, 100);
    sends(world, 0, 7);
    sends(pair, 0, 10);  // process 3 of the world
    CHECK(anywhere.read() == (Values{1, 0, 0, 2}));
    CHECK(bytes.read() == (Values{7, 0, 0, 110}));
    CHECK(here.read() == (Values{1, 0}));
    CHECK(to_pair.read() == (Values{2, 0}));
  });
}

TEST(a_watch_counts_from_start_to_stop_and_goes_on_where_it_was) {
  alone([] {
    Watch watch(sent_here, of_pair);
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{0, 0}));  // not started
    watch.start();
    sends(pair, 0, 1);
    watch.start();  // it is already
    sends(pair, 0, 1);
    watch.stop();
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{2, 0}));
    watch.stop();
    CHECK(watch.read() == (Values{2, 0}));
    watch.start();
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{3, 0}));
    CHECK(watch.read_and_reset() == (Values{3, 0}));
    CHECK(watch.read() == (Values{0, 0}));
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{1, 0}));
    watch.stop();
    watch.reset();
    CHECK(watch.read() == (Values{0, 0}));
  });
}

TEST(two_watches_do_not_disturb_each_other) {
  alone([] {
    Watch a(sent_here, of_pair), b(sent_here, of_pair);
    a.start();
    b.start();
    sends(pair, 0, 1);
    a.reset();
    sends(pair, 0, 1);
    CHECK(a.read() == (Values{1, 0}));
    CHECK(b.read() == (Values{2, 0}));
  });
}

TEST(threads_are_counted_together) {
  alone([] {
    Watch watch(sent_here, of_pair);
    watch.start();
    sends(pair, 0, 5);
    std::thread([] { sends(pair, 0, 5); }).join();
    CHECK(watch.read() == (Values{2, 0}));
  });
}

TEST(what_was_forgotten_in_between_is_not_counted_below_zero) {
  alone([] {
    Watch watch(sent_here, of_pair);
    sends(pair, 0, 1);
    sends(pair, 0, 1);
    watch.start();
    for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) forget_peers(*thread);
    CHECK(watch.read() == (Values{0, 0}));
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{1, 0}));
  });
}

TEST(what_is_counted_after_a_reset_is_all_new_to_a_watch) {
  alone([] {
    Watch watch(bytes_anywhere, of_pair);
    sends(pair, 0, 10);
    watch.start();
    forget_counted();
    sends(pair, 0, 14);
    CHECK(watch.read() == (Values{14, 0}));
    CHECK(watch.read_and_reset() == (Values{14, 0}));
    sends(pair, 0, 1);
    CHECK(watch.read() == (Values{1, 0}));
  });
}

TEST(sizes_go_by_powers_of_two) {
  alone([] {
    Watch watch({Flow::sent, Measure::sizes, Breadth::whole}, of_world);
    watch.start();
    for (const std::uint64_t bytes : {0ull, 1ull, 2ull, 3ull, 4ull, 1ull << 63}) sends(world, 0, bytes);
    const Values sizes = watch.read();
    CHECK_EQ(sizes.size(), size_bins);
    CHECK_EQ(sizes[0], 1u);
    CHECK_EQ(sizes[1], 1u);
    CHECK_EQ(sizes[2], 2u);
    CHECK_EQ(sizes[3], 1u);
    CHECK_EQ(sizes[64], 1u);
  });
}

TEST(sizes_are_also_there_for_each_member) {
  alone([] {
    Watch watch({Flow::sent, Measure::sizes, Breadth::here}, of_world);
    watch.start();
    CHECK_EQ(watch.size(), 4 * size_bins);
    for (const std::uint64_t bytes : {0ull, 5ull, 7ull}) sends(world, 1, bytes);
    sends(world, 3, 1ull << 63);
    sends(pair, 1, 5);  // another communicator
    Values expected(4 * size_bins);
    expected[size_bins] = 1;
    expected[size_bins + 3] = 2;
    expected[3 * size_bins + 64] = 1;
    CHECK(watch.read_and_reset() == expected);
    CHECK(watch.read() == Values(4 * size_bins));
  });
}

TEST(a_regular_collective_has_the_same_for_all_others) {
  alone([] {
    Watch count(shared, of_world), bytes(bytes_shared, of_world);
    count.start();
    bytes.start();
    count_shape(this_thread(), Flow::one_to_all, world, op::MPI_Bcast, 3 * 8);
    count_shape(this_thread(), Flow::all_to_all, pair, op::MPI_Allreduce, 16);
    CHECK(count.read() == (Values{1, 0, 1, 2}));
    CHECK(bytes.read() == (Values{8, 0, 8, 24}));
  });
}

TEST(a_prefix_sum_has_something_for_those_that_come_later) {
  alone([] {
    Watch count(shared, of_world), bytes(bytes_shared, of_world);
    count.start();
    bytes.start();
    count_shape(this_thread(), Flow::all_to_all, world, op::MPI_Exscan, 3 * 8);  // 4 processes, this one is the second
    CHECK(count.read() == (Values{0, 0, 1, 1}));
    CHECK(bytes.read() == (Values{0, 0, 8, 8}));
  });
}

TEST(a_collective_that_says_what_it_has_for_each_is_not_spread_as_well) {
  alone([] {
    Watch bytes(bytes_shared, of_world);
    bytes.start();
    count_message(this_thread(), Flow::share, world, op::MPI_Alltoallv, 0, 5);
    count_message(this_thread(), Flow::share, world, op::MPI_Alltoallv, 2, 6);
    count_shape(this_thread(), Flow::all_to_all, world, op::MPI_Alltoallv, 11);
    CHECK(bytes.read() == (Values{5, 0, 6, 0}));
    Watch whole({Flow::all_to_all, Measure::bytes, Breadth::whole}, of_world);
    whole.start();
    count_shape(this_thread(), Flow::all_to_all, world, op::MPI_Alltoallv, 11);
    CHECK(whole.read() == (Values{11}));
  });
}

TEST(of_a_communicator_that_is_freed_the_members_are_remembered) {
  alone([] {
    alive.insert(freed);
    Watch count(shared, of_world);
    count.start();
    count_shape(this_thread(), Flow::all_to_all, freed, op::MPI_Barrier, 0);
    remember_members(freed);
    alive.erase(freed);
    CHECK(count.read() == (Values{0, 0, 0, 1}));
  });
}

TEST(a_variable_that_the_library_has_too_gets_our_prefix) {
  const int plain = variable_of("pml_monitoring_messages_count");
  CHECK(plain >= 0);
  CHECK_EQ(variable_of("commlens_pml_monitoring_messages_count"), plain);
  const Variable& variable = variables()[static_cast<std::size_t>(plain)];
  CHECK_EQ(name_of(variable, false), "pml_monitoring_messages_count");
  CHECK_EQ(name_of(variable, true), "commlens_pml_monitoring_messages_count");
  const int own = variable_of("commlens_comm_sent_count");
  CHECK(own >= 0);
  CHECK_EQ(name_of(variables()[static_cast<std::size_t>(own)], true), "commlens_comm_sent_count");
  CHECK_EQ(variable_of("comm_sent_count"), -1);
  CHECK_EQ(variable_of("commlens_commlens_comm_sent_count"), -1);
  CHECK_EQ(variable_of(""), -1);
}

TEST(no_variable_changes_its_place_when_the_library_gets_more) {
  PositionMap places;
  CHECK(!places.are_fixed());
  places.fix(3, 2);
  CHECK(places.are_fixed());
  CHECK_EQ(places.number(3), 5);
  CHECK_EQ(places.of_theirs(2), 2);
  CHECK_EQ(places.of_ours(1), 4);
  CHECK_EQ(places.of_theirs(3), 5);  // one that came later
  CHECK(!places.at(2).is_ours);
  CHECK(places.at(4).is_ours);
  CHECK_EQ(places.at(4).which, 1);
  CHECK(!places.at(5).is_ours);
  CHECK_EQ(places.at(5).which, 3);
  CHECK(!places.at(-1).is_ours);
  CHECK_EQ(places.at(-1).which, -1);
}

}  // namespace commlens
