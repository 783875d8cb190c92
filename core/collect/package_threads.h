// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/state/counted.h"

namespace commlens {

// Returns the standard error of a cell's time; 0: the time is exact.
Ns error_ns(const CountedCell& cell, const TickScale& scale);

// Whether the time in MPI of a process is estimated in part (hot/untimed.h).
bool has_estimates(const Cells& cells);

// Returns the time in MPI of a region that took `time`.  Only an estimate may be more than that: of a short iteration
// it mostly is 0 or too much, and the sum over many would be too small if each were cut off.
Ns mpi_ns(const CountedRegions::Sum& sum, Ns time, const TickScale& scale, bool is_estimated);

// Writes the part of a package with the counters of single threads; Profile::read_threads() reads it.  `cells` are
// those of all threads, in the order in which the package has them.
void write_threads(WireWriter& out, const CountedThreads& threads, const Cells& cells, const TickScale& scale);

}  // namespace commlens
