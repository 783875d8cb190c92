// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/options.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Reads the options of this process, once.  Call before options().
void read_options();
const Options& options() noexcept;

// Prepares to count regions, if that has not been done.  Needs no MPI: a program may begin regions before it calls MPI
// and before an MPI library is loaded.  Returns false if it fails.
bool prepare_counting() noexcept;

}  // namespace commlens
