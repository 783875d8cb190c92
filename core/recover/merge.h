// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/out/sqlite.h"
#include "core/profile/profile.h"
#include "core/recover/read.h"

namespace commlens {

using Readers = std::vector<std::unique_ptr<arena::Reader>>;

// Merges arenas that have been read into one profile.  pre: there is at least one, and each is of another rank.  An
// arena that cannot be added is left out; `say` gets one line about it.
Profile profile_of(const Readers& readers, const std::function<void(const std::string&)>& say);

// Returns the rows of table meta for the profile of a job.
out::Meta meta_of(const journal::JobEntry& job, const Profile& profile);

}  // namespace commlens
