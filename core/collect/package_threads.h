// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/state/counted.h"

namespace commlens {

// Writes the part of a package with the counters of single threads; Profile::read_threads() reads it.  `cells` are
// those of all threads, in the order in which the package has them.
void write_threads(WireWriter& out, const CountedThreads& threads, const Cells& cells, const TickScale& scale);

}  // namespace commlens
