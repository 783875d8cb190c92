// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/identity.h"
#include "core/collect/group.h"
#include "core/collect/write.h"
#include "core/state/counted.h"

namespace commlens {

// The contribution of one process to a profile.
struct Contribution {
  std::optional<Counted> counted;  // none: there was no memory for it
  Destination destination;         // of rank 0, or of the process that writes the profile
  bool in_session = false;         // this process has an MPI session open and continues to count
  unsigned long aggregators = 0;   // 0: chosen by the number of rows; the largest value of all ranks counts
  bool summary = false;            // distributions over the ranks instead of rows per rank, if any rank asks for it
  Identity* world = nullptr;       // rank 0: its random id of the world, which all other ranks get; null: all have it
  Ticks begin = 0;                 // when collecting began here
  Ticks (*clock)() = now;          // of the phases
};

enum class CollectResult {
  stored,       // the counters of this rank are in a profile
  not_stored,   // the counters are in no profile; a message has been printed
  not_begun,    // the ranks have exchanged nothing; the group has the reason
  no_messages,  // the ranks cannot send messages (Group::connect); nothing has been done
  too_early,    // some rank continues to count; nothing has been done
};

// Collective over the group: merges the counters of all ranks into one profile.  Aggregators gather the rows of a block
// of ranks each, agree on global ids, and write one shard each; a single aggregator writes the profile itself.
CollectResult collect_together(Group& group, Contribution own);

// Returns the number of ranks per aggregator.  aggregators = 0 chooses it by `rows`, the number of cells of all ranks.
int block_size(int ranks, unsigned long aggregators, std::uint64_t rows);

}  // namespace commlens
