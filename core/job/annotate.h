// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// Returns whether the calls of commlens.h have an effect.
bool is_annotating() noexcept;

// Records a value of metric number `metric`, in its series too if there are series.
void record_metric(std::uint64_t metric, double value) noexcept;

// Prints a message if the library of empty functions comes before the profiler in the search order.
void check_annotations();

// From now on the calls of commlens.h have no effect.
void stop_annotating() noexcept;

}  // namespace commlens
