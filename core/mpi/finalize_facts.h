// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/identity.h"
#include "core/collect/collect.h"
#include "core/out/parts.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The facts about the job and about this process that a profile contains.  The functions may throw bad_alloc.

// Returns the path of the profile as the user wants it.
std::string profile_name();

// Returns where the profile goes, for the process that writes it.  mark: part of the name of a file; empty: none.
Destination own_destination(const std::string& mark = "");

// Returns the contribution of this process to a profile, with `destination`.  begin: when collecting began.
Contribution own_contribution(Ticks begin, Destination destination);

// The same for MPI_Finalize, where other ranks wait for this one: if there is no memory for the facts, prints a message
// and leaves them out.  Only rank 0 needs its destination.
Contribution own_contribution_to_all(Ticks begin);

// Remembers how many processes the launcher says it has started.  To be called before MPI_Init, because a process that
// Open MPI starts as a job of its own sets variables of a launcher.
void remember_launcher() noexcept;

// If this process is alone in its world, but its launcher says that it has started several, prints a message on the
// first of them.
void say_if_launcher_disagrees() noexcept;

// Returns a number that is the same for all processes of one launch and differs between launches.
Identity id_of_launch();

// The same, as it was at the begin: the launcher may die before this process, and the program may change its
// environment.
Identity launch_of_job();

// Returns the place for the parts of a job whose ranks cannot collect together.  All its processes can compute its
// name.
out::Parts parts_of_job();

// Writes the facts about the job to the journal.  Also remembers the command line, because a program may overwrite its
// arguments with a title.
void note_job() noexcept;

}  // namespace commlens
