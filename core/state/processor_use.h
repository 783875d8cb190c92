// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/ticks.h"

namespace commlens {

// What a process has used of the CPUs, all its threads together.
struct ProcessorUse {
  Ns cpu = 0;                   // CPU time, user and system
  std::uint64_t preempted = 0;  // involuntary context switches
};

// Returns the use from reading `b` to reading `a`; 0 if `b` is the later one.
inline ProcessorUse operator-(const ProcessorUse& a, const ProcessorUse& b) noexcept {
  return {a.cpu - std::min(a.cpu, b.cpu), a.preempted - std::min(a.preempted, b.preempted)};
}

// Returns the later of two readings of one process.
inline ProcessorUse later(const ProcessorUse& a, const ProcessorUse& b) noexcept {
  return {std::max(a.cpu, b.cpu), std::max(a.preempted, b.preempted)};
}

// Returns what this process has used since its start, by getrusage().
ProcessorUse processor_use() noexcept;

// Returns the same without what it used during pauses of counting.
ProcessorUse counted_use() noexcept;

// Returns counted_use() at the last clearing of all counters.
ProcessorUse forgotten_use() noexcept;

}  // namespace commlens
