// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/recover/read.h"

namespace commlens {

// Leaves in `now` what its process has counted since `before`, an earlier state of the same process: calls, times,
// bytes, values of metrics and samples.  Minima, maxima and last values stay those of the whole run, because they
// cannot be computed from two states.  If the program has cleared its counters since `before`, `now` stays unchanged.
void subtract(arena::Reader& now, const arena::Reader& before);

}  // namespace commlens
