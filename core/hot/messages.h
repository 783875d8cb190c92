// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/clock.h"
#include "core/base/identity.h"
#include "core/hot/key.h"
#include "core/hot/peer_cell.h"
#include "core/hot/samples.h"

// Samples of messages: when one process sent a message, and when the other one received it.  From both, the profile
// tells how long the receiver waited for the sender, or the sender for the receiver (profile/messages.h).
//
// Both ends number the messages of a channel, that is, from one process to another in one communicator: the sender when
// it sends them, the receiver when the call returns that completes them.  At level L, they sample one block of
// consecutive messages of each 2^L.  A hash of the communicator's identity chooses which one, so that both ends sample
// the same messages, and all channels of a communicator the same numbers: a process that waits for a message of each
// neighbour has all of them in its samples.
//
// Non-blocking and persistent collectives have channels, too: all operations of one communicator, procedure and size
// bin, or of one persistent request.  A sample of such an operation has the call that completed it, and when it was
// started.
//
// A receiver may take messages with different tags in another order than they were sent.  Where the sum of all tags
// before a message is the same at both ends, they have had the same messages.  From there on, the tags tell which is
// which.
namespace [[gnu::visibility("hidden")]] commlens {

inline constexpr unsigned message_block_bits = 4;  // 16 messages

struct MessageSample {
  std::uint64_t number;  // of the message in its channel, from 0
  Ticks entered, left;   // of the send, or of the call that completed the receive
  Ticks posted;          // when the receive was posted, or the operation started; 0: unknown, or a send
  Key call;              // of that call
  std::int32_t tag;      // of an operation: SampleFlag
  std::uint32_t tags;    // sum of the tags of all messages before
};

// Samples of one channel, in the arena.
struct alignas(64) MessageChunk {
  static constexpr std::uint32_t capacity = 10;
  static constexpr std::uint32_t of_several_threads = ~std::uint32_t{0};  // a level
  std::uint64_t key;                                                      // channel_key() or operation_key(); 0: free
  std::uint32_t count;  // written with release, because other processes may read it
  std::uint32_t level;
  MessageChunk* next;  // an address valid in this process only
  std::uint64_t reserved;
  MessageSample sample[capacity];
};
static_assert(sizeof(MessageChunk) == 512);

// The messages that one thread sends to, or receives from, one process in one communicator.
struct alignas(64) Channel {
  std::int32_t skips;  // number of messages before the next one that is sampled
  std::uint32_t tags;  // sum of the tags of all messages
  std::uint64_t next;  // number of the next one that is sampled
  std::uint64_t key;   // as in MessageChunk; 0: nothing is sampled
  Identity seed;       // identity of the communicator
  MessageChunk *first, *last;
  Channel* before;  // list of all channels
  std::uint32_t level, kept;
  std::uint32_t thread;  // that uses it
};

// Bit 63: 1.  Bit 58: 1 for operations, else 0.  Bit 57: 1 if messages are received.  Bits 56-32: communicator.
// Bits 31-0: rank of the peer.
inline constexpr std::uint64_t channel_key(Flow flow, std::uint32_t comm, std::uint32_t peer) noexcept {
  return std::uint64_t{1} << 63 | std::uint64_t{flow == Flow::received} << 57 | std::uint64_t{comm} << 32 | peer;
}
// The same for operations.  Bits 31-17: index.  Bits 16-7: procedure.  Bits 6-0: size bin.  index: 0 for a non-blocking
// procedure; each persistent request has one of its own.
inline constexpr std::uint32_t most_operation_index = (1u << 15) - 1;
inline constexpr std::uint64_t operation_key(std::uint32_t comm, std::uint32_t op, std::uint32_t bin,
                                             std::uint32_t index) noexcept {
  return std::uint64_t{1} << 63 | std::uint64_t{1} << 58 | std::uint64_t{comm} << 32 | index << 17 | op << 7 | bin;
}
inline constexpr bool is_of_operations(std::uint64_t channel) noexcept { return (channel >> 58 & 1) != 0; }
// operation: the lower half of a key.
inline constexpr std::uint32_t index_of_operation(std::uint32_t operation) noexcept { return operation >> 17; }
inline constexpr std::uint32_t op_of_operation(std::uint32_t operation) noexcept { return operation >> 7 & 0x3ff; }
inline constexpr std::uint32_t bin_of_operation(std::uint32_t operation) noexcept { return operation & 0x7f; }

inline constexpr bool is_of_receiver(std::uint64_t channel) noexcept { return (channel >> 57 & 1) != 0; }
inline constexpr std::uint32_t comm_of_channel(std::uint64_t channel) noexcept {
  return static_cast<std::uint32_t>(channel >> 32) & max_comm;
}
inline constexpr std::uint32_t peer_of_channel(std::uint64_t channel) noexcept {
  return static_cast<std::uint32_t>(channel);
}

inline bool is_chosen_message(Identity seed, std::uint32_t level, std::uint64_t number) noexcept {
  return is_chosen(seed, level, number >> message_block_bits);
}

// Counts a message of the channel; returns whether it is to be sampled.
inline bool count_and_check_due(Channel& channel, int tag) noexcept {
  channel.tags += static_cast<std::uint32_t>(tag);
  return __builtin_expect(--channel.skips < 0, 0);
}

// The call that sent a message, or that completed its receive.
struct MessageCall {
  Key key;
  Ticks left;
  Ticks posted;  // as in MessageSample
};

// Cold (state/messages.cpp).  Takes the sample of a message that is due, and determines the next one.  A message in a
// region that is not counted is numbered only.
struct Thread;
void take_message(Thread& thread, Channel& channel, int tag, const MessageCall& call) noexcept;

// Cold.  Numbers a message that is not counted, because counting is paused.
void pass_message(Thread& thread, Flow flow, std::uint32_t comm, std::uint32_t peer, int tag) noexcept;

// Cold.  Returns the channel of a communicator's operations; null: they are not sampled.  Each persistent request has
// one of its own.
struct CommView;
Channel* operations_of(const CommView& comm, std::uint32_t op, std::uint32_t bin, bool is_persistent) noexcept;

// Cold.  Begins the sample of an operation that is due, and determines the next one.  request: identifies it until it
// completes; 0: it is complete already, and has no sample.
void begin_operation(Thread& thread, Channel& channel, std::uint64_t request, std::uint32_t flags) noexcept;
// Ends the sample of an operation that the current call has completed.  Does nothing if there is none.
void end_operation(Thread& thread, std::uint64_t request, Key call, Ticks left) noexcept;
void drop_operation(std::uint64_t request) noexcept;

// Cold.  Stops sampling the operations of a communicator: a call failed, so that its number is unknown.
void stop_operations(std::uint32_t comm) noexcept;

// Cold.  Stops sampling the messages of a communicator, whose numbers may differ between the ends from now on: a call
// has failed, or a request was cancelled or freed.
void stop_messages(std::uint32_t comm) noexcept;

}  // namespace commlens
