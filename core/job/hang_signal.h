// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/state/registry.h"

namespace [[gnu::visibility("hidden")]] commlens {

// From the first MPI call on, the signal named by `text` (COMMLENS_HANG_SIGNAL) makes the process print what its
// threads are doing.  If `text` is empty, no signal handler is changed.
void watch_for_hang_signal(const std::string& text, const Registry& registry);

// Call when MPI is initialised: installs the handler again, because libraries below MPI may have replaced it.
void keep_watching_for_hang_signal() noexcept;

}  // namespace commlens
