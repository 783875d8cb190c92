// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/clock.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Collective, inside MPI_Finalize: collects the counters of all ranks and writes the profile.  Returns false if some
// rank continues in a session; then each rank calls collect_at_exit() at its end.
bool collect(Ticks finalising) noexcept;

// The same without MPI, when the process ends: the ranks exchange their parts through files.
void collect_at_exit() noexcept;

}  // namespace commlens
