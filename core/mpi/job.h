// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <sched.h>

#include <climits>
#include <ctime>

#include "core/cold/identity.h"
#include "core/hot/clock.h"

namespace [[gnu::visibility("hidden")]] commlens {

// What this process is in its MPI_COMM_WORLD, or in the process set mpi://WORLD of its sessions.  Written before the
// application can call anything else; all of it is known without asking other processes, of which some may not be under
// commlens.
struct Job {
  bool ready = false;  // to count: from MPI_Init or the first session on
  bool world = false;  // between MPI_Init and MPI_Finalize
  int sessions = 0;    // open
  int rank = -1;
  int size = 0;
  int thread_level = -1;          // provided; -1: not known
  MPI_Group group{};              // of MPI_COMM_WORLD, or of mpi://WORLD
  MPI_Group session_group{};      // mpi://WORLD, while sessions are open
  Identity world_id = 0;          // random, agreed on by its processes; 0: not yet
  Ticks started = 0;              // when MPI_Init returned, or the first session was there
  Ticks counted_start = 0;        // `started` by the clock of counted time
  Ticks ended = 0;                // when MPI_Finalize was called, or the last session ended
  std::time_t began = 0;          // the time of day at `started`
  Ticks init = 0;                 // time inside MPI_Init or MPI_Session_init
  Ticks own_init = 0;             // what we added to it
  Ticks own_call = 0;             // estimated, for one call
  Ticks waited = 0;               // in MPI_Finalize, for the other ranks
  cpu_set_t cpus{};               // this process may run on; the OpenMP runtime may bind its threads later
  char directory[PATH_MAX] = "";  // where the program was started; it may go elsewhere
};

extern Job job;

// Notes in the arena what is known of the job; remembers the command line, too: a program may write a title over its
// arguments.
void note_job() noexcept;

// Collects what all ranks counted and has rank 0 write the profile; inside MPI_Finalize, on all ranks.  False when some
// rank goes on in a session: then all do this at their end.
bool collect(Ticks finalising) noexcept;

// The same without MPI, when the process ends: through files.
void collect_at_exit() noexcept;

}  // namespace commlens
