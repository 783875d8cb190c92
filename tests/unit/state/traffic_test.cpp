// SPDX-License-Identifier: Apache-2.0
#include "core/state/traffic.h"

#include <functional>

#include "core/base/ticks.h"
#include "core/hot/peers.h"
#include "core/hot/thread.h"
#include "core/state/peers.h"
#include "core/state/regions.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

using Values = std::vector<std::uint64_t>;

// Rank 1 of a world of 4, and ranks 1 and 3 of it as a pair, where it comes second.
constexpr std::uint32_t world = 1, pair = 2;
const MemberRanks of_world{world, 1, {0, 1, 2, 3}};
const MemberRanks of_pair{pair, 1, {3, 1}};

std::int32_t rank_in_world(std::uint32_t comm, std::uint32_t peer) noexcept {
  return comm == world ? of_world.world[peer] : of_pair.world[peer];
}

// What is counted belongs to the process.
void alone(const std::function<void()>& body) {
  in_own_process([&body] {
    choose_matrix("all", "none", 1000);
    ask_for_world_ranks(rank_in_world);
    body();
  });
}

void counts(Flow flow, std::uint32_t comm, int peer, std::uint64_t bytes) {
  count_message(this_thread(), flow, comm, 0, peer, bytes);
}
void sends(std::uint32_t comm, int peer, std::uint64_t bytes) { counts(Flow::sent, comm, peer, bytes); }

Values bytes_with(const MemberRanks& members, bool are_inside_known = false) {
  return traffic_since_mark(members, are_inside_known).bytes;
}

}  // namespace

TEST(what_a_process_sends_writes_and_reads_counts_in_any_communicator) {
  alone([] {
    sends(world, 3, 100);
    sends(pair, 0, 10);  // process 3 of the world
    counts(Flow::put, world, 0, 20);
    counts(Flow::get, world, 2, 30);
    counts(Flow::received, world, 2, 999);  // the sender counts it
    CHECK(bytes_with(of_world) == (Values{20, 0, 30, 110}));
    CHECK(bytes_with(of_pair) == (Values{110, 0}));
  });
}

TEST(messages_inside_collectives_take_the_place_of_their_blocks) {
  alone([] {
    counts(Flow::share, world, 0, 5);
    counts(Flow::collective, world, 2, 6);
    counts(Flow::collective_send, world, 2, 7);
    CHECK(bytes_with(of_world, false) == (Values{5, 0, 0, 0}));
    CHECK(bytes_with(of_world, true) == (Values{0, 0, 13, 0}));
  });
}

TEST(each_communicator_has_a_mark_of_its_own) {
  alone([] {
    sends(world, 3, 100);
    mark_traffic(of_pair, false);
    sends(world, 3, 1);
    CHECK(bytes_with(of_pair) == (Values{1, 0}));
    CHECK(bytes_with(of_world) == (Values{0, 0, 0, 101}));
    mark_traffic(of_world, false);
    CHECK(bytes_with(of_world) == (Values{0, 0, 0, 0}));
    CHECK(bytes_with(of_pair) == (Values{1, 0}));
    mark_traffic(of_pair, false);
    CHECK(bytes_with(of_pair) == (Values{0, 0}));
    forget_mark(pair);
    CHECK(bytes_with(of_pair) == (Values{101, 0}));
    forget_mark(pair);
  });
}

TEST(time_in_communication_counts_from_the_mark) {
  alone([] {
    record(this_thread(), make_key(world, 1, 1, 0), 0, 70, 0, 0);
    CHECK_EQ(traffic_since_mark(of_world, false).communicating, Ticks{70});
    mark_traffic(of_world, false);
    record(this_thread(), make_key(world, op::MPI_Waitall, 1, 0), 0, 5, 0, 0);
    CHECK_EQ(traffic_since_mark(of_world, false).communicating, Ticks{5});
    record(this_thread(), make_key(world, op::MPI_Comm_dup, 1, 0), 0, 300, 0, 0);
    record(this_thread(), make_key(world, op::MPI_File_write, 1, 0), 0, 300, 0, 0);
    CHECK_EQ(traffic_since_mark(of_world, false).communicating, Ticks{5});
  });
}

TEST(after_a_reset_all_that_is_counted_is_new) {
  alone([] {
    sends(world, 3, 100);
    mark_traffic(of_world, false);
    forget_peers(this_thread());
    sends(world, 3, 40);
    CHECK(bytes_with(of_world) == (Values{0, 0, 0, 40}));
  });
}

TEST(after_a_reset_a_mark_is_void_even_if_more_is_counted_than_before) {
  alone([] {
    sends(world, 3, 100);
    record(this_thread(), make_key(world, 1, 1, 0), 0, 70, 0, 0);
    mark_traffic(of_world, false);
    forget_counted();
    sends(world, 3, 140);
    this_thread().current.since = now();  // else the call would have begun before the reset
    record(this_thread(), make_key(world, 1, 1, 0), 0, 75, 0, 0);
    CHECK(bytes_with(of_world) == (Values{0, 0, 0, 140}));
    CHECK_EQ(traffic_since_mark(of_world, false).communicating, Ticks{75});
    mark_traffic(of_world, false);
    sends(world, 3, 1);
    CHECK(bytes_with(of_world) == (Values{0, 0, 0, 1}));
  });
}

}  // namespace commlens
