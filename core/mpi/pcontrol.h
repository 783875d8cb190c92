// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/key.h"

namespace commlens {

// Reads COMMLENS_PCONTROL, which names the tool whose meaning of MPI_Pcontrol the program uses.
void choose_dialect() noexcept;

// Handles a call of MPI_Pcontrol.  argument: the second argument; it is undefined if the application passed none.
void pcontrol(int level, const void* argument, Site site) noexcept;

}  // namespace commlens
