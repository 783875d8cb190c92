// SPDX-License-Identifier: Apache-2.0
#pragma once

// The performance variables of the MPI library as metrics (COMMLENS_PVARS, docs/decisions/0042-pvars.md).
namespace [[gnu::visibility("hidden")]] commlens {

// Opens the variables.  Call while MPI is initialised.  Does nothing if none are wanted, or if they are open.
void begin_pvars() noexcept;

// Reads them for the last time.  end_pvars() then closes them; both must come before MPI is finalised.
void read_pvars_at_end() noexcept;
void end_pvars() noexcept;

}  // namespace commlens
