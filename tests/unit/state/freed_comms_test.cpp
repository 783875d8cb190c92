// SPDX-License-Identifier: Apache-2.0
#include "core/state/freed_comms.h"

#include <map>
#include <vector>

#include "core/hot/peers.h"
#include "core/state/peers.h"
#include "core/state/registry.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

CommRecord record_of(Identity identity, Identity root = 0) {
  CommRecord record;
  record.kind = CommKind::intra;
  record.identity = identity;
  record.root = root;
  return record;
}

}  // namespace

TEST(a_communicator_is_over_for_those_who_ask_after_its_end_but_for_the_one_they_leave_out) {
  in_own_process([] {
    const FreedComms at_first(0);
    comm_freed(3);
    comm_freed(70'000);  // of another block
    const FreedComms then(0), but_for_one(3);
    comm_freed(5);
    for (const std::uint32_t comm : {3u, 5u, 70'000u, 4u, 140'000u, max_comm}) CHECK(!at_first.has(comm));
    CHECK(then.has(3) && then.has(70'000) && !then.has(5) && !then.has(4) && !then.has(max_comm));
    CHECK(!but_for_one.has(3) && but_for_one.has(70'000));
    CHECK(FreedComms(0).has(5));
  });
}

TEST(those_that_share_a_record_are_never_over_and_the_others_once) {
  in_own_process([] {
    Registry registry;
    const std::uint32_t own = registry.add(record_of(1), true).index;
    const std::uint32_t shared = registry.add_sibling(record_of(2, 1)).index;
    CHECK(!FreedComms(0).has(own));
    registry.freed(own);
    registry.freed(shared);
    CHECK(FreedComms(0).has(own));
    CHECK(!FreedComms(0).has(shared));  // the next one like it counts there, too
  });
}

TEST(a_thread_whose_communicators_come_and_go_has_a_small_index_and_keeps_what_each_counted) {
  in_own_process([] {
    choose_matrix("p2p", "none", 1u << 20);
    begin_slices(1);
    Thread& thread = this_thread();
    constexpr std::uint32_t comms = 30'000, at_once = 100, stays = comms + 1;
    std::map<std::uint32_t, std::uint64_t> calls, messages;  // by communicator
    Ticks at = 2;
    const auto call = [&](std::uint32_t comm, std::uint32_t op) {
      thread.current.since = at;
      record(thread, make_key(comm, op, 3, 0), 7, 1, 4, 0);
      count_message(thread, Flow::sent, comm, 0, 1, 4);
      at += 2;
      ++calls[comm];
      ++messages[comm];
    };
    for (std::uint32_t comm = 1; comm <= comms; ++comm) {
      for (std::uint32_t op = 1; op <= 3; ++op) call(comm, op);
      call(stays, 1);
      if (comm <= at_once) continue;
      comm_freed(comm - at_once);
      if (comm % 5 == 0) call(comm - at_once, 3);  // its windows and files may live on
      CHECK(thread.table.mask < 2048 && thread.peers.mask < 1024);
    }
    CHECK(thread.table.left_out > 3 * comms / 2);
    each_cell(thread.table, [&](const Cell& cell) { calls[comm_of_key(cell.key)] -= cell.calls; });
    each_peer([&](const PeerCell& cell) { messages[comm_of_peer(cell.key)] -= cell.messages; });
    for (const auto& [comm, missing] : calls) CHECK_EQ(missing, 0u);
    for (const auto& [comm, missing] : messages) CHECK_EQ(missing, 0u);
  });
}

}  // namespace commlens
