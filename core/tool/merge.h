// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/arena/read.h"
#include "core/collect/profile.h"
#include "core/out/sqlite.h"

namespace commlens {

using Readers = std::vector<std::unique_ptr<arena::Reader>>;

// One profile of arenas that have been read, each of another rank; at least one.  What cannot be added is left out,
// which `say` is told in one line for each.
Profile profile_of(const Readers& readers, const std::function<void(const std::string&)>& say);

// What the profile of a job says of the run.
out::Meta meta_of(const journal::JobEntry& job, const Profile& profile);

}  // namespace commlens
