// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/process/modules.h"

namespace commlens {

// Returns the module that contains a call site, or null.  Looks it up and stores it at the first call of the site,
// because a plugin may be unloaded, and another one loaded in its place, before the profile is collected.
const Module* module_of_site(std::uint64_t site) noexcept;

}  // namespace commlens
