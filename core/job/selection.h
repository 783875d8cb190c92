// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/options.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Returns whether this process is to be measured, by COMMLENS_SKIP and COMMLENS_SAMPLE.  All ranks of a job get the
// same answer if they run the same program.  Needs no MPI: the answer is wanted before the first call.
bool is_selected(const Options& options);

// Returns the seconds for which a rank waits in MPI_Finalize for others (COMMLENS_PATIENCE).  Fewer if others may be
// switched off: in a job of several programs, by COMMLENS_SKIP; by COMMLENS_SAMPLE, if nothing says that all ranks have
// decided alike.  They never arrive.
unsigned long patience(const Options& options);

// Returns the id that the batch system gave this job; empty: there is none.
std::string job_id();

// Returns Hydra's proxy on this node, or else the parent process.  A script may be between this process and the proxy.
pid_t launcher_process();

}  // namespace commlens
