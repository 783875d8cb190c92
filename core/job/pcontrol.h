// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/hot/key.h"

namespace commlens {

// wanted: COMMLENS_PCONTROL, which names the tool whose meaning of MPI_Pcontrol the program uses.
void choose_dialect(const std::string& wanted) noexcept;

// Handles a call of MPI_Pcontrol.  argument: the second argument; it is undefined if the application passed none.
void pcontrol(int level, const void* argument, Site site) noexcept;

// The next call of pcontrol() in this thread comes from Fortran, from `site`, with a text of `bytes`: the MPI library's
// Fortran binding, which has one argument, would not pass these on.
void note_fortran_caller(Site site, std::uint32_t bytes) noexcept;

}  // namespace commlens
