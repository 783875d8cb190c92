// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/base/ticks.h"
#include "core/profile/channels.h"

// Splits the time of calls that complete receives or collectives, and of blocking sends, into waiting for the other
// side and the rest.
//
// A receiver waits from its entry until the sender enters its send.  If a call completes several messages, the latest
// counts.  A blocking sender waits from its entry until the receive is posted, if it returned after that.  A collective
// that a call completes counts as a message of the rank that started it last, or of its root (profile/operations.h).
namespace commlens {

class Profile;

// A call of which at least one message could be split.
struct MessageCallRow {
  std::uint32_t comm = 0, op = 0, bin = 0, region = 0;
  int rank = 0;
  Ticks entered = 0;       // by the clock of the rank
  Ns spent = 0;            // in the call
  Ns waiting = 0;          // for the latest message
  Ns apart = 0;            // between the entries of the two calls
  Ns behind = 0;           // by how much this call began after that of the other side
  Ns tolerance = 0;        // by how much `waiting` may be wrong, because the clocks differ
  bool is_across = false;  // between machines
  double weight = 1;       // number of calls for which it stands
  std::uint64_t block = 0;
  int late_rank = -1;             // the other side
  std::uint32_t late_region = 0;  // in which it was

  auto kind() const { return std::make_tuple(comm, op, bin); }
};

struct SplitMessages {
  std::vector<MessageCallRow> calls;  // by kind()
  std::vector<LostSample> lost;
};

// Splits the messages of all ranks.  ends: those of all blocks, to which the result points.
SplitMessages split_messages(const ChannelEnds& ends);

// The time for which the sampled calls of some ranks stand, and the waiting in it.
struct MessageTime {
  std::uint32_t comm, op, bin;
  Ns time = 0, waiting = 0;
  std::uint64_t calls = 0;  // for which they stand
  std::uint64_t mixed = 0;  // number of ranks some of whose calls wait for no message
};

// Adds the rows of this block's ranks to profile.waiting.  Returns the sums over these ranks; the kinds, and their
// order, depend on the calls only.
std::vector<MessageTime> add_waiting(Profile& profile, const SplitMessages& split);

// Adds up the calls in profile.sampled, and what could not be split in profile.unsplit.  times: of all ranks.
void sum_up(Profile& profile, const SplitMessages& split, const std::vector<MessageTime>& times);

}  // namespace commlens
