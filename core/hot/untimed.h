// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Calls that cannot wait, such as MPI_Isend, MPI_Iprobe or MPI_Test, often take less time than two looks at the clock.
// All of them are counted.  When a cell has enough of them, only a random part is timed, and the time of the others is
// estimated.
//
// The calls of a cache entry are divided into blocks of 2^d consecutive calls.  Of each block one call is timed, at a
// random place: an application's period cannot meet it.  Its time, times 2^d - 1, is the estimate for the others.  Each
// call is timed with a probability of 1/2^d, whatever happens, so that the sum of all estimates is unbiased.  Constant
// and slowly changing costs have nearly no error, because each block has exactly one.
//
// Whether a call is timed, and whether it stands for its block, is decided before MPI is called, from what is known
// then. What happens in the call, such as that it completes a request, loses its processor, fails, or ends in another
// region, has no influence.  Its time is added where the call is counted, and so is the estimate that it stands for: of
// two cells, each gets its share in the mean.
//
// The untimed calls of a cell are counted in a second Cell, whose key has another bin (untimed_key()):
//   calls, bytes_sent, bytes_received   of the untimed calls: exact
//   time                                the estimate of their time
//   time_max, time_min                  the variance of this estimate in ticks^2: its upper bits, its lower 60 bits
// So the cell itself has the calls that were timed, and nothing else.
namespace [[gnu::visibility("hidden")]] commlens {

// Which calls of a cache entry go untimed.
struct Gap {
  // Above 0: so many calls go untimed before the next one that is timed and stands for its block.  0: the next one
  // does. Below: so many are timed before that.
  std::int16_t turn;
  std::uint8_t doublings;  // that one stands for 2^doublings calls
  std::uint8_t rest;       // number of calls of its block after it
  std::uint32_t last;      // the time of the last one that stood for its block, at most 2^32 - 1 ticks
};
static_assert(sizeof(Gap) == 8);

inline constexpr std::uint64_t usual_timed_first = 1024;
inline constexpr std::uint64_t time_every_call = ~std::uint64_t{0};
inline constexpr unsigned variance_bits = 60;  // in time_min

// The first calls of a cell, all of which are timed.  Written before anything is counted.
extern std::uint64_t timed_first;

// Returns the turn of an entry whose cell has so many calls, all of which were timed.
inline std::int16_t turn_after(std::uint64_t calls) noexcept {
  constexpr std::uint64_t most = 32767;
  const std::uint64_t more = calls < timed_first ? timed_first - calls - 1 : 0;
  return static_cast<std::int16_t>(-static_cast<std::int32_t>(more < most ? more : most));
}

}  // namespace commlens
