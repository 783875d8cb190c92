// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/hot/handles.h"
#include "core/mpi/api.h"
#include "core/state/registry.h"
#include "core/state/requests.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Prepares to count, before the first measured call.  Returns false if it fails.
bool prepare() noexcept;

// Shared by the wrappers.  Created by prepare() and never destroyed, because threads may call MPI while the program
// exits.
extern Registry* registry;
extern HandleMap comms;    // MPI_Comm -> CommView
extern HandleMap windows;  // MPI_Win -> CommView
extern HandleMap files;    // MPI_File -> FileRecord
extern RequestTable requests;
extern Site site_mask;  // all ones, or 0 when call sites are off

// True if a call needs no checks at its beginning.  Then there is no Fortran binding, the clock is the time stamp
// counter, call sites are recorded, and neither messages inside collectives nor events are.
extern bool calls_are_plain;
inline bool are_calls_plain() noexcept { return __atomic_load_n(&calls_are_plain, __ATOMIC_RELAXED); }
// False if the call site is the return address of the wrapper: there is no Fortran binding, there are no call
// paths, and no events are counted.
extern bool must_locate_calls;
void update_calls() noexcept;  // updates both; call after any of these has changed

// A file.  reading: cell of the split collective read that is in progress; null: none.
struct FileRecord {
  const CommView* comm;
  Cell* reading;
};

}  // namespace commlens
