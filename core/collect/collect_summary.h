// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/collect/group.h"
#include "core/collect/write.h"
#include "core/profile/profile.h"
#include "core/profile/summary.h"

namespace commlens {

// What packages are merged into, and the answer of rank 0 to all.
struct SummaryParts {
  Profile profile;
  Summary summary;
  Dictionary of_all;  // ranks
  std::vector<char> answer = std::vector<char>(1);
};

// Collective: merges the packages of all ranks along one tree, and rank 0 writes the summary.  own: from
// packed_for_summary(); parts: empty.  Returns false if it is not stored or lacks the data of some rank.
bool collect_summary(Group& group, const Destination& destination, out::Phases phases, std::vector<char> own,
                     SummaryParts& parts);

}  // namespace commlens
