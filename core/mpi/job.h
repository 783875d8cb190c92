// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <sched.h>

#include <climits>
#include <ctime>

#include "core/base/clock.h"
#include "core/base/identity.h"

namespace [[gnu::visibility("hidden")]] commlens {

// This process in its MPI_COMM_WORLD, or in the process set mpi://WORLD of its sessions.  Written before the
// application can make any other call.  All of it is determined without other processes, because some of them may run
// without commlens.
struct Job {
  bool ready = false;  // counting: from MPI_Init or the first session on
  bool world = false;  // between MPI_Init and MPI_Finalize
  int sessions = 0;    // number of open sessions
  int rank = -1;
  int size = 0;
  int thread_level = -1;          // provided; -1: not known
  MPI_Group group{};              // of MPI_COMM_WORLD, or of mpi://WORLD
  MPI_Group session_group{};      // mpi://WORLD, while sessions are open
  Identity world_id = 0;          // random, the same on all its processes; 0: not yet
  Ticks started = 0;              // when MPI_Init or the first MPI_Session_init returned
  Ticks counted_start = 0;        // `started` in counted time
  Ticks ended = 0;                // when MPI_Finalize was called, or the last session ended
  std::time_t began = 0;          // the time of day at `started`
  Ticks init = 0;                 // time inside MPI_Init or MPI_Session_init
  Ticks own_init = 0;             // the part that commlens added to it
  Ticks own_call = 0;             // the same per call, estimated
  Ticks waited = 0;               // time in MPI_Finalize until the other ranks arrived
  cpu_set_t cpus{};               // allowed at the start; the OpenMP runtime may bind its threads later
  char directory[PATH_MAX] = "";  // working directory at the start; it may change
};

extern Job job;

// Writes the facts about the job to the journal.  Also remembers the command line, because a program may overwrite its
// arguments with a title.
void note_job() noexcept;

// Collective, inside MPI_Finalize: collects the counters of all ranks and writes the profile.  Returns false if some
// rank continues in a session; then each rank calls collect_at_exit() at its end.
bool collect(Ticks finalising) noexcept;

// The same without MPI, when the process ends: the ranks exchange their parts through files.
void collect_at_exit() noexcept;

}  // namespace commlens
