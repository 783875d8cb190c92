// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace [[gnu::visibility("hidden")]] commlens {

// COMMLENS_HANG_SIGNAL: from the first call of MPI on, that signal makes this process say where its threads are.
// Without it nothing is touched.
void watch_for_hang_signal();

// When MPI is initialised: libraries under it may have put a handler of their own in the place of ours.
void keep_watching() noexcept;

}  // namespace commlens
