// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/key.h"

namespace commlens {

// COMMLENS_PCONTROL: in the words of which tool the program speaks.
void choose_dialect() noexcept;

// The application calls MPI_Pcontrol.  argument: what stands where a second one would; there may be none.
void pcontrol(int level, const void* argument, Site site) noexcept;

}  // namespace commlens
