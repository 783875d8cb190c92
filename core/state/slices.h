// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/hot/regions.h"
#include "core/hot/thread.h"
#include "core/state/freed_comms.h"

// Calls, time and bytes over time, per communicator and procedure; and time per region.
//
// The time since MPI_Init is divided into slices of equal width.  At the first call that ends in a new slice, a thread
// compares its cells with their previous values, and appends the differences to its log.  The hot path therefore counts
// everything once, there is no timer, and time between two calls has no cost.  When all slices are used, each pair is
// merged and the width doubles.  Any run length fits, and a run of a day has few more comparisons than one of an hour.
namespace commlens {

inline constexpr std::uint32_t max_slices = 128;

// Bit of the number of a thread's current slice (SliceLog::slot): its slices have ended for lack of memory.  What it
// counts from then on is in none; its messages stay in the last one.
inline constexpr std::uint64_t slices_ended = std::uint64_t{1} << 63;

// The sum over the calls of one communicator and procedure in one slice.
struct SliceEntry {
  Key key;  // communicator and procedure only; or region_slice_key(): then `time` is exclusive
  std::uint64_t slot;
  std::uint64_t calls;  // calls that ended in this slice
  Ticks time;           // time within this slice, including calls that ended later
  std::uint64_t bytes_sent;
  std::uint64_t bytes_received;
};

// Head of a block of a log in an arena; its entries follow.  When a block is full, or the slice width has doubled, the
// log continues in a new block.  The log consists of the blocks of the newest generation.
struct alignas(64) SliceBlock {
  std::uint64_t generation;
  Ticks width;
  std::atomic<std::uint64_t> count;
  std::uint64_t capacity;  // entries
  SliceBlock* next;        // an older block of this generation, or null; an address valid in this process only
};

inline constexpr Key slice_key(Key key) noexcept {
  return key & (Key{1} << 63 | Key{max_comm} << 37 | Key{0x3ff} << 27);
}

// Not the number of any procedure.
inline constexpr std::uint32_t region_op = 0x3ff;
inline constexpr Key region_slice_key(std::uint32_t region) noexcept { return make_key(0, region_op, 0, region); }
inline constexpr bool is_of_region(Key key) noexcept { return op_of_key(key) == region_op; }

// Calls visit(region, time) for the open regions of a stack, with their exclusive times at a moment of counted time.
template <class Visit>
void each_open(const Frame* frames, std::uint32_t depth, Ticks at, Visit visit) {
  Ticks within = 0;  // time in nested regions that are open, too
  for (std::uint32_t i = depth; i > 0; --i) {
    const Frame& frame = frames[i];
    if (frame.key == 0) {
      within += frame.nested;
      continue;
    }
    const Ticks nested = frame.nested + within;
    within = time_in(frame.start, at, nested);
    visit(frame.region, within - nested);
  }
}

// Begins the first slice at `start`.
void begin_slices(Ticks start) noexcept;

// Logs what a thread has counted since its last log entry, at the end of a run.  pre: the thread makes no MPI calls any
// more.
void finish_slices(Thread& thread, Ticks end) noexcept;

// Logs what the calling thread has counted for communicators that have ended, so that their cells may leave the index.
// Returns false if they must stay, because slices have not begun.
bool leave_slices(Thread& thread, const FreedComms& freed) noexcept;

// Clears the log of a thread whose cells were cleared.
void forget_slices(Thread& thread) noexcept;

// The log entries of one thread, and their slice width.
struct SliceLogContent {
  Ticks width = first_slice_width;
  std::vector<SliceEntry> entries;
};
SliceLogContent slices_of(const Thread& thread);

// Merges the logs of several threads: converts them to the largest width, and adds up entries with equal key and slot.
SliceLogContent added_up(const std::vector<SliceLogContent>& all);

}  // namespace commlens
