// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/profile/clocks.h"
#include "core/profile/waiting.h"

// Puts the samples of both ends of a channel together: which sample of the sender, and which of the receiver, are of
// the same message (hot/messages.h).  Those of operations are put together in profile/operations.h.
namespace commlens {

class Profile;

// One sample of one end, in the numbers of a profile.
struct MessageRow {
  std::uint64_t number = 0;
  Ticks entered = 0, left = 0, posted = 0;
  std::uint32_t comm = 0, op = 0, bin = 0, region = 0;  // of the call
  int tag = 0;
  std::uint32_t tags = 0;
};

// What one process has sampled of the messages from one process to another, or of the operations of a communicator.
struct ChannelEnd {
  std::uint32_t comm = 0;
  std::uint32_t operation = 0;  // the lower half of operation_key(); 0: messages
  int from = 0, to = 0;         // ranks in the communicator; of operations: both that of the process
  bool is_receiver = false;
  int rank = 0;                      // of the process, in the world
  bool has_several_threads = false;  // then one sample remains, for procedure and size bin
  std::uint64_t messages = 0;        // all messages, or operations, of the channel
  std::uint64_t all = 0;             // all messages that the rank received, or sent, in the communicator
  int members = 0;                   // size of the communicator
  // Of neighbourhood collectives: the ranks to which the process sends, and the number of those that send to it.
  std::vector<int> destinations;
  int sources = -1;  // -1: unknown
  RankClock clock;
  std::vector<MessageRow> samples;  // by number

  auto place() const { return std::make_tuple(comm, operation, from, to, is_receiver); }
};
using ChannelEnds = std::vector<ChannelEnd>;  // by place()

// A message of which both ends have a sample.
struct Message {
  const ChannelEnd *sender, *receiver;
  const MessageRow *sent, *received;
};

// How much later one time is than another one, which another clock may have told.
struct Later {
  double ns = 0;
  Ns tolerance = 0;  // by which it may be wrong
  bool is_known = false;
};
Later later(const RankClock& of, Ticks time, const RankClock& than_of, Ticks than);

// Time in the call of a sample.
Ns spent_in(const ChannelEnd& end, const MessageRow& row);

// A sample that cannot be split, or a channel without samples, and the reason.
struct LostSample {
  const ChannelEnd* end;
  std::uint32_t comm, op, bin;  // of the call
  Unsplit reason;
  std::uint64_t calls;
};

// The messages of which both ends have a sample, and the samples that are left over.
struct MatchedMessages {
  std::vector<Message> messages;
  std::vector<LostSample> lost;
};

// Gives each end the clock of its rank and the size of its communicator, and sorts the ends.  pre: the profile is
// settled.
void settle_channels(Profile& profile);

void add_channels(ChannelEnds& to, const ChannelEnds& more);
void write_channels(WireWriter& out, const ChannelEnds& ends);
ChannelEnds read_channels(WireReader& in);

// Matches the samples of both ends of all channels.  The result points into `ends`.
MatchedMessages match(const ChannelEnds& ends);

}  // namespace commlens
