// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/process/settings.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Returns the MPI library's control variables whose values come neither from its defaults nor from the environment.
// Call while MPI is initialised.  Empty for libraries other than Open MPI 4 and 5 (docs/decisions/0022).
std::vector<Setting> control_variables();

}  // namespace commlens
