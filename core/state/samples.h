// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/hot/samples.h"

namespace commlens {

struct CommRecord;

// Memory for samples of collectives per process; those of messages have as much (state/messages.h).  When it is used
// up, each stratum keeps half as many, and so on.
inline constexpr std::uint64_t most_sample_bytes = 1 << 20;
// Samples of one stratum, and the smallest number to which a lack of memory reduces it.
inline constexpr std::uint32_t most_samples = 256 * SampleChunk::capacity, fewest_samples = SampleChunk::capacity;

// Chooses what is sampled (COMMLENS_WAITING: 0, 1 or barrier), before the first communicator is known.  barrier: all
// blocking collectives, in as much memory as they need.
void choose_sampling(const std::string& waiting) noexcept;
bool is_sampling_on() noexcept;
bool are_all_sampled() noexcept;

// Notes that the members of a communicator wait in a barrier before each blocking collective on it.
void note_barriers(std::uint32_t comm);

// Decides whether some collectives of a new communicator are sampled.  Of the communicators that one line of the
// program makes, all of the first 64 are, then half of the next 64, a quarter of the next 128, and so on: hash decides
// which, so that all members decide alike.  Memory thus grows with the logarithm of their number.  Call with the lock
// of the registry held.
bool begin_sampling(const CommRecord& record);

// The samples of one stratum, in the order of the calls.
struct StratumSamples {
  Key key = 0;
  std::uint32_t level = 0;
  std::vector<Sample> samples;
};

// Removes samples until at most `most` are left, by raising the level.  comm: identity of the communicator.
void thin_out(StratumSamples& stratum, Identity comm, std::uint32_t most);

// Returns the samples of this process.
std::vector<StratumSamples> samples_here();

// Drops all samples; the numbers of the calls go on.
void forget_samples() noexcept;

}  // namespace commlens
