// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/cold/online.h"

namespace commlens {

// The rank in MPI_COMM_WORLD of a peer in a communicator of the application's, as peers.h of core/cold/ asks for it.
std::int32_t world_rank(std::uint32_t comm, std::uint32_t peer) noexcept;

// The members of a communicator, as online.h asks for them.
std::optional<Members> members(std::uint32_t comm);

}  // namespace commlens
