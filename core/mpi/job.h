// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <sched.h>

#include <climits>

#include "core/hot/clock.h"

namespace [[gnu::visibility("hidden")]] commlens {

// What this process is in its MPI_COMM_WORLD.  Written in MPI_Init, before the application can call anything else; all
// of it is known there without asking other processes, of which some may not be under commlens.
struct Job {
  bool ready = false;
  int rank = -1;
  int size = 0;
  MPI_Group group{};              // of MPI_COMM_WORLD
  Ticks started = 0;              // when MPI_Init returned
  Ticks init = 0;                 // time inside it
  Ticks own_init = 0;             // what we added to it
  Ticks own_call = 0;             // estimated, for one call
  cpu_set_t cpus{};               // this process may run on; the OpenMP runtime may bind its threads later
  char directory[PATH_MAX] = "";  // where the program was started; it may go elsewhere
};

extern Job job;

// Collects what all ranks counted and has rank 0 write the profile; inside MPI_Finalize, on all ranks.
void collect(Ticks finalising) noexcept;

}  // namespace commlens
