// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace [[gnu::visibility("hidden")]] commlens {

// COMMLENS_HANG_SIGNAL: from the first MPI call on, this signal makes the process print what its threads are doing.
// Without the option, no signal handler is changed.
void watch_for_hang_signal();

// Call when MPI is initialised: installs the handler again, because libraries below MPI may have replaced it.
void keep_watching_for_hang_signal() noexcept;

}  // namespace commlens
