// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collect/group.h"
#include "core/collect/write.h"

namespace commlens {

// Collective over the aggregators: they agree on global numbers, each writes the shard of its block, and rank 0 writes
// the index.  Returns false if this shard or the index is not stored; a message has been printed then.
bool write_shards(Group& leaders, const Destination& destination, int ranks, Profile& profile, out::Phases phases);

}  // namespace commlens
