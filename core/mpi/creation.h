// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/cold/identity.h"
#include "core/hot/comm_view.h"
#include "core/mpi/state.h"
#include "generated/procedures.h"

namespace commlens {

// What, beside its processes, tells a new communicator from the others (docs/decisions/0005-identity.md).
struct Origin {
  enum class How {
    on_parent,     // all members of the parent count its creations alike
    under_group,   // only the new members know of it: counted per parent, `processes` and `key`
    by_processes,  // no parent that all members know: counted per processes of the new one and `key`
    by_world,      // there is one per world
    by_meeting,    // by its processes if both sides are of this world, else as on_parent
  } how;
  Identity key;            // of a tag
  Identity processes = 0;  // under_group
  int leader = -1;         // its world rank, where that is known already
};

namespace identity {
inline Origin parent() noexcept { return {Origin::How::on_parent, 0}; }
inline Origin world() noexcept { return {Origin::How::by_world, 0}; }
inline Origin meeting() noexcept { return {Origin::How::by_meeting, 0}; }
inline Origin processes(int tag) noexcept { return {Origin::How::by_processes, static_cast<Identity>(tag)}; }
Origin processes(const char* stringtag) noexcept;
Origin group(MPI_Group group, int tag) noexcept;
}  // namespace identity

// Registers what a successful creation returned; MPI_COMM_NULL counts as a creation, too.  Only local MPI calls.
void created(Op op, const CommView& parent, MPI_Comm made, const Origin& origin, Site site) noexcept;

// True for a call inside another one that the application makes, in a callback; MPI libraries make communicators for
// themselves, by the same names.
bool made_in_callback(Site caller) noexcept;

// MPI_Comm_idup: takes its number now; the communicator is there when `request` completes, unless that fails:
// what MPI has left in the variable then may be no communicator any more.
void creating(Op op, const CommView& parent, MPI_Comm* made, bool set_already, Payload payload, Site site) noexcept;
void creation_over(Payload payload, bool succeeded) noexcept;

// Takes the handle out of the map before it is freed, because MPI may give it out again at once.
const CommView* comm_going(MPI_Comm comm) noexcept;
void comm_gone(const CommView* view) noexcept;
void comm_stays(MPI_Comm comm, const CommView* view) noexcept;  // freeing failed

void name_comm(MPI_Comm comm, const char* name) noexcept;
void window_going(MPI_Win win) noexcept;
void file_going(MPI_File file) noexcept;

}  // namespace commlens
