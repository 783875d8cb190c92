// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

namespace [[gnu::visibility("hidden")]] commlens {

// The processes of the job, as MPI groups.
struct JobGroups {
  MPI_Group world{};    // of MPI_COMM_WORLD, or of mpi://WORLD
  MPI_Group session{};  // mpi://WORLD, while sessions are open
};

extern JobGroups job_groups;

}  // namespace commlens
