// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/cold/options.h"
#include "core/cold/registry.h"
#include "core/cold/requests.h"
#include "core/hot/handles.h"
#include "core/mpi/api.h"

namespace [[gnu::visibility("hidden")]] commlens {

void read_options();
const Options& options() noexcept;

// Makes ready to count regions, if that has not been done; false when it cannot be.
bool prepare_counting() noexcept;

// Makes ready to count, before the first measured call; false when it cannot be.
bool prepare() noexcept;

// What the wrappers share.  Made by prepare(), never destroyed: threads may call MPI while the program exits.
extern Registry* registry;
extern HandleMap comms;    // MPI_Comm -> CommView
extern HandleMap windows;  // MPI_Win -> CommView
extern HandleMap files;    // MPI_File -> FileRecord
extern RequestTable requests;
extern Site site_mask;  // all ones, or 0 when call sites are off

// True when a call has nothing to ask at its beginning: no Fortran binding is there, the clock is the time stamp
// counter, call sites are wanted, and the messages inside collectives are not.
extern bool calls_are_plain;
inline bool are_calls_plain() noexcept { return __atomic_load_n(&calls_are_plain, __ATOMIC_RELAXED); }
void look_at_calls() noexcept;  // after any of these has changed

// A file, and the split collective under way on it.
struct FileRecord {
  const CommView* comm;
  Cell* reading;
};

}  // namespace commlens
