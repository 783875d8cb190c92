// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/key.h"
#include "core/process/modules.h"

namespace commlens {

// Returns the module that contains a call site, or null.  Looks it up and stores it at the first call of the site,
// because a plugin may be unloaded, and another one loaded in its place, before the profile is collected.
const Module* module_of_site(Site site) noexcept;

}  // namespace commlens
