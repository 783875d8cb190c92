// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <climits>
#include <ctime>

#include "core/base/clock.h"
#include "core/base/identity.h"
#include "core/state/partners.h"
#include "core/state/processor_use.h"

namespace [[gnu::visibility("hidden")]] commlens {

// This process in its MPI_COMM_WORLD, or in the process set mpi://WORLD of its sessions.  Written before the
// application can make any other call.  All of it is determined without other processes, because some of them may run
// without commlens.
struct Job {
  bool ready = false;  // counting: from MPI_Init or the first session on
  bool world = false;  // between MPI_Init and MPI_Finalize
  int sessions = 0;    // number of open sessions
  pid_t process = 0;   // counts; a forked child does not
  int rank = -1;
  int size = 0;
  int thread_level = -1;          // provided; -1: not known
  Identity world_id = 0;          // random, the same on all its processes; 0: not yet
  Identity launch = 0;            // the same for all processes of one launch (journal::JobEntry); 0: not yet
  Ticks started = 0;              // when MPI_Init or the first MPI_Session_init returned
  Ticks counted_start = 0;        // `started` in counted time
  Ticks ended = 0;                // when MPI_Finalize was called, or the last session ended
  ProcessorUse use_at_start;      // counted_use() at `started`
  ProcessorUse use_at_end;        // counted_use() at `ended`
  std::time_t began = 0;          // the time of day at `started`
  Ticks init = 0;                 // time inside MPI_Init or MPI_Session_init
  Ticks own_init = 0;             // the part that commlens added to it
  Ticks own_call = 0;             // the same per call, estimated
  Ticks waited = 0;               // time in MPI_Finalize until the other ranks arrived
  PartnerConstants constants{};   // of the MPI library
  cpu_set_t cpus{};               // allowed at the start; the OpenMP runtime may bind its threads later
  char directory[PATH_MAX] = "";  // working directory at the start; it may change
};

extern Job job;

}  // namespace commlens
