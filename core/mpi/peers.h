// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/state/online.h"

namespace commlens {

// Returns the rank in MPI_COMM_WORLD of a peer in a communicator, for ask_for_world_ranks() of core/state/peers.h.
std::int32_t world_rank(std::uint32_t comm, std::uint32_t peer) noexcept;

// Returns the members of a communicator, for ask_for_members() of core/state/online.h.
std::optional<MemberRanks> members(std::uint32_t comm);

}  // namespace commlens
