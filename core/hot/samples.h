// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/clock.h"
#include "core/base/identity.h"
#include "core/hot/handles.h"
#include "core/hot/key.h"

// Samples of blocking collectives: when this process entered and left a call.  From the samples of all members, the
// profile splits the time of a collective into waiting and operation (profile/waiting.h).
//
// All members of a communicator sample the same calls without talking about it.  Each member numbers the calls of a
// stratum, that is, of one communicator, procedure and size bin.  At level L, it samples one call of each 2^L.  A hash
// of the communicator's identity chooses which one.  The calls of a level are among those of all lower levels, so what
// members of different levels have in common is the choice of the highest level.
namespace [[gnu::visibility("hidden")]] commlens {

// One call in which this process took part.
struct Sample {
  std::uint64_t number;  // of the call in its stratum, from 0
  Ticks entered, left;
  Ticks mpi;  // time that the thread had spent in counted calls when it entered
  std::uint32_t region;
  std::uint32_t flags;  // SampleFlag
};

namespace SampleFlag {
inline constexpr std::uint32_t root = 1;     // this process was the root of the call
inline constexpr std::uint32_t empty = 2;    // a block that this process sends or receives has no data
inline constexpr std::uint32_t barrier = 4;  // all members waited for the last one in a barrier before (mpi/barriers.h)
}  // namespace SampleFlag

// Samples of one stratum, in the arena.
struct alignas(64) SampleChunk {
  static constexpr std::uint32_t capacity = 12;
  Key key;              // of the stratum; 0: free
  std::uint32_t count;  // written with release, because other processes may read it
  std::uint32_t level;
  SampleChunk* next;  // an address valid in this process only
  std::uint64_t reserved;
  Sample sample[capacity];
};
static_assert(sizeof(SampleChunk) == 512);

struct alignas(64) Stratum {
  std::int32_t skips;  // number of calls before the next one that is sampled
  std::uint32_t level;
  std::uint64_t next;  // number of that call
  Key key;             // communicator, procedure and size bin; 0: nothing is sampled
  Identity seed;
  SampleChunk *first, *last;
  Stratum* before;  // list of all strata
  std::uint32_t kept;
  std::uint32_t thread;  // of fences: 1 + the number of the thread that made the first one
};
static_assert(sizeof(Stratum) == 64);

inline constexpr Key stratum_key(std::uint32_t comm, std::uint32_t op, std::uint32_t bin) noexcept {
  return make_key(comm, op, bin, 0);
}

// Returns the seed that decides which calls of a stratum are sampled.  comm: identity of the communicator.
inline Identity seed_of(Identity comm, Key key) noexcept {
  return combine(comm, std::uint64_t{op_of_key(key)} << 7 | bin_of_key(key));
}

// Returns the number of the call that is sampled among the 2^level calls from block << level on.
inline std::uint64_t chosen_call(Identity seed, std::uint32_t level, std::uint64_t block) noexcept {
  for (; level > 0; --level) block = 2 * block + (combine(seed ^ level, block) & 1);
  return block;
}
inline bool is_chosen(Identity seed, std::uint32_t level, std::uint64_t number) noexcept {
  return chosen_call(seed, level, number >> level) == number;
}

extern HandleMap strata;  // stratum_key() -> Stratum

// Cold (state/samples.cpp).  Adds a stratum; returns `unsampled` when memory ran out.  stop_sampling(): see CommView.
Stratum* add_stratum(Key key, Identity comm, Stratum& unsampled) noexcept;
struct CommView;
void stop_sampling(const CommView& comm) noexcept;
void stop_stratum(Stratum& stratum) noexcept;

// Cold.  Takes the sample of a call that ended at `left`, and determines the next one.  is_valid: false: the call
// failed.
struct Thread;
void take_sample(Thread& thread, Stratum& stratum, Ticks left, std::uint32_t flags, bool is_valid) noexcept;

// Counts a call of the stratum; returns whether it is to be sampled.  Two instructions: the sign of the difference
// decides.
inline bool count_and_check_due(Stratum& stratum) noexcept { return __builtin_expect(--stratum.skips < 0, 0); }

}  // namespace commlens
