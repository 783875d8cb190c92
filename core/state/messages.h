// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/hot/messages.h"

namespace commlens {

// Memory for samples of messages per process.  When it is used up, each channel keeps half as many, and so on.
inline constexpr std::uint64_t most_message_bytes = 1 << 20;
// Samples of one channel, and the smallest number to which a lack of memory reduces it: two blocks.
inline constexpr std::uint32_t most_messages = 2048, fewest_messages = 2u << message_block_bits;

// The highest level of a channel, so that the distance between two samples fits into `skips`.
inline constexpr std::uint32_t highest_message_level = 26;

// Sets the function that returns the identity of a communicator whose messages are sampled, or 0.  It is called for
// each new channel and must not communicate.
void ask_for_sampled(Identity (*identity)(std::uint32_t comm) noexcept) noexcept;

// Returns the channel to which the messages of a new cell of the matrix belong; one without samples if they are not
// sampled.
Channel* channel_of(Thread& thread, PeerKey key, PeerPlace place) noexcept;

// The samples of one channel, in the order of the messages or operations.
struct ChannelSamples {
  std::uint64_t key = 0;  // as in MessageChunk
  std::uint32_t level = 0;
  // The order of its messages is unknown; one sample remains, from which the profile takes procedure and size bin.
  bool has_several_threads = false;
  std::vector<MessageSample> samples;
};

// Removes samples until at most `most` are left, by raising the level.  comm: identity of the communicator.
void thin_out(ChannelSamples& channel, Identity comm, std::uint32_t most);

// Returns the samples of this process.
std::vector<ChannelSamples> messages_here();

// Drops all samples; the numbers of the messages go on.
void forget_messages() noexcept;

}  // namespace commlens
