// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/collect/group.h"
#include "core/collect/write.h"

namespace commlens {

// Collective: merges the packages of all ranks along one tree, and rank 0 writes the summary.  own: from
// packed_for_summary().  Returns false if it is not stored or lacks the data of some rank.
bool collect_summary(Group& group, const Destination& destination, out::Phases phases, std::vector<char> own);

}  // namespace commlens
