// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/recover/read.h"

namespace commlens {

// Leaves in `now` what its process has counted since `before`, an earlier state of the same process: calls, times,
// bytes, values of metrics and samples.  Minima, maxima and last values stay those of the whole run, because no
// difference tells them.  If the program has cleared its counters in between, they stay as they are.
void subtract(arena::Reader& now, const arena::Reader& before);

}  // namespace commlens
