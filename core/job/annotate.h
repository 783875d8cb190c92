// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commlens {

// Returns whether the calls of commlens.h have an effect.
bool is_annotating() noexcept;

// Prints a message if the library of empty functions comes before the profiler in the search order.
void check_annotations();

// From now on the calls of commlens.h have no effect.
void stop_annotating() noexcept;

}  // namespace commlens
