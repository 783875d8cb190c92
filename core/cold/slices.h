// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/cold/ended.h"
#include "core/hot/regions.h"
#include "core/hot/thread.h"

// Calls, time and bytes over time, per communicator and procedure; and time per region.
//
// The time since MPI_Init is cut into slices of one width.  At the first call that ends in a new one a thread compares
// its cells with what they were before, and appends what was added to its log: nothing is counted twice on the hot
// path, there is no timer, and what happens between two calls costs nothing.  When all slices are used, two become one
// and the width doubles: any run length fits, and a day has not many more comparisons than an hour.
namespace commlens {

inline constexpr std::uint32_t max_slices = 128;

// What the calls of one communicator and procedure added up to in one slice.
struct SliceEntry {
  Key key;  // communicator and procedure only; or region_slice_key(): then `time` is exclusive
  std::uint64_t slot;
  std::uint64_t calls;  // that ended in it
  Ticks time;           // in it, also of calls that ended later
  std::uint64_t bytes_sent;
  std::uint64_t bytes_received;
};

// What a log begins with in an arena; entries follow.  A log that is full, or whose slices have doubled, goes on in a
// new block; those of the newest generation are the log.
struct alignas(64) SliceBlock {
  std::uint64_t generation;
  Ticks width;
  std::atomic<std::uint64_t> count;
  std::uint64_t capacity;  // entries
  SliceBlock* next;        // an older one of this generation, or null; for the process itself
};

inline constexpr Key slice_key(Key key) noexcept {
  return key & (Key{1} << 63 | Key{max_comm} << 37 | Key{0x3ff} << 27);
}

// No procedure has this number.
inline constexpr std::uint32_t region_op = 0x3ff;
inline constexpr Key region_slice_key(std::uint32_t region) noexcept { return make_key(0, region_op, 0, region); }
inline constexpr bool is_of_region(Key key) noexcept { return op_of_key(key) == region_op; }

// Exclusive times of the regions of a stack that are under way at a moment of counted time: visit(region, time).
template <class Visit>
void each_open(const Frame* frames, std::uint32_t depth, Ticks at, Visit visit) {
  Ticks within = 0;  // in regions further in, which have not ended either
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

// From here on slices are counted; `start` is the beginning of the first.
void begin_slices(Ticks start) noexcept;

// From here on `action` is called again and again, by the first thread that makes a call `every` ticks after the last
// time.
void call_every(Ticks every, void (*action)()) noexcept;

// Notes what a thread has counted since it was last noted, at the end of a run; when it does not call MPI any more.
void finish_slices(Thread& thread, Ticks end) noexcept;

// Notes what the calling thread has counted of communicators that are over: from here on their cells are not looked at
// any more.  false: they must be, because slices have not begun.
bool leave_slices(Thread& thread, const EndedComms& ended) noexcept;

// Drops what a thread has noted; its cells are empty again.
void forget_slices(Thread& thread) noexcept;

// The entries of one thread, and their width.
struct Sliced {
  Ticks width = first_slice_width;
  std::vector<SliceEntry> entries;
};
Sliced slices_of(const Thread& thread);

// Brings what several threads logged to one width, and adds up what is alike.
Sliced added_up(const std::vector<Sliced>& all);

}  // namespace commlens
