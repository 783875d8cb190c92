// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/state/online.h"

// What this process has exchanged with the members of a communicator since a mark, for commlens_reorder().
namespace commlens {

struct Traffic {
  // For each member, the bytes sent to it, read from it, and of its blocks in collectives; in any communicator.
  std::vector<std::uint64_t> bytes;
  // Time of the calling thread in messages, collectives, one-sided calls and completions: what another order may
  // shorten. Making communicators and files are no part of it.
  Ticks communicating = 0;
};

// Counts from the last mark of the communicator, or from the beginning of the process or the last commlens_reset().
//  are_inside_known: the messages inside collectives are counted; they replace the blocks.
Traffic traffic_since_mark(const MemberRanks& members, bool are_inside_known);
void mark_traffic(const MemberRanks& members, bool are_inside_known);

// Forgets the mark of a communicator that is freed.
void forget_mark(std::uint32_t comm) noexcept;

}  // namespace commlens
