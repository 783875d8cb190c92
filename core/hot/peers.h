// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/peer_cell.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Counts one message, or one collective by its shape.
// pre: matrix.peers; peer >= 0.
void count_message(Thread& thread, Flow flow, std::uint32_t comm, std::uint32_t op, int peer, std::uint64_t bytes,
                   std::uint32_t call = 0) noexcept;
void count_shape(Thread& thread, Flow shape, std::uint32_t comm, std::uint32_t op, std::uint64_t bytes) noexcept;

// The same for what a request moves: like its bytes it is of the call that made the request, in the communicator and
// region that it was made in, wherever it is started or completed.
void count_message_of(Thread& thread, Key maker, Flow flow, std::uint32_t op, int peer, std::uint64_t bytes) noexcept;
void count_shape_of(Thread& thread, Key maker, Flow shape, std::uint64_t bytes) noexcept;

}  // namespace commlens
