// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/collect/collect.h"
#include "core/out/parts.h"

namespace commlens {

// Collecting without messages between the ranks: they end at different times, or some of them run without commlens.
// Throws bad_alloc if there is no memory.

// Writes a profile of one rank of a job of `ranks`.  Returns false, after a message, if it is not stored.
bool collect_alone(Contribution own, int ranks);

// The part of one rank of a job, in the files through which the ranks collect.
struct OwnPart {
  int rank = 0, ranks = 0;
  Destination destination;
  out::Phases phases;
  std::vector<char> package;
  bool is_there = false;  // the package is among the parts
};

// Stores the part of this rank; rank 0 also stores its orders for the profile.  launch: as in PartHead.
OwnPart put_part(Contribution own, int rank, int ranks, std::uint64_t launch, out::Parts& parts);

// On the rank that finds the parts of all ranks: merges them, writes the profile and returns true.  On other
// ranks returns false: a later rank merges the parts.
bool merge_parts(OwnPart own, out::Parts& parts);

}  // namespace commlens
