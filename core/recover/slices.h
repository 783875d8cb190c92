// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/recover/segments.h"
#include "core/state/slices.h"

// The slices of a thread, from its arena; with the time of what was in progress at the end.
namespace commlens::arena {

// Blocks of slices, with the offsets of their entries.
using Blocks = std::vector<std::pair<std::uint64_t, const SliceBlock*>>;

bool is_slice_width(Ticks width);

// Returns the slices of one thread.  Counts that it has not yet assigned to a slice, up to `totals`, belong to the
// current one of `log`, unless its slices have stopped.
SliceLogContent slices_of(const Segments& segments, const Blocks& blocks, const std::map<Key, SliceEntry>& totals,
                          const SliceLog& log, bool& is_damaged);

// Returns how much of a run that ends at `end` is after the current slice of `log`.  Times are since MPI_Init.
Ticks after_current(const SliceLog& log, Ticks end);

// Doubles the width of the slices until they cover the run.
void cover(SliceLogContent& sliced, Ticks end);

// Divides the `time` before `end` among the slices that it covers.
void spread(SliceLogContent& sliced, Key key, Ticks time, Ticks end);

}  // namespace commlens::arena
