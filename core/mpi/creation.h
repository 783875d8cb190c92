// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/base/identity.h"
#include "core/hot/comm_view.h"
#include "core/mpi/state.h"
#include "generated/procedures.h"

namespace commlens {

// The facts that distinguish a new communicator from others, beside its processes (docs/decisions/0005-identity.md).
struct Origin {
  enum class How {
    on_parent,     // all members of the parent count the creations on it
    under_group,   // only the new members take part: counted per parent, `processes` and `key`
    by_processes,  // no parent that all members know: counted per new processes and `key`
    by_world,      // one per world
    by_meeting,    // as by_processes, for two sides that connect; one may be of another world
  } how;
  Identity key;            // identity of the tag
  Identity processes = 0;  // under_group
  int leader = -1;         // its world rank, if known already; -1: not yet
};

namespace identity {
inline Origin parent() noexcept { return {Origin::How::on_parent, 0}; }
inline Origin world() noexcept { return {Origin::How::by_world, 0}; }
inline Origin meeting() noexcept { return {Origin::How::by_meeting, 0}; }
inline Origin processes(int tag) noexcept { return {Origin::How::by_processes, static_cast<Identity>(tag)}; }
Origin processes(const char* stringtag) noexcept;
Origin group(MPI_Group group, int tag) noexcept;
}  // namespace identity

// Registers the communicator that a successful creation returned.  MPI_COMM_NULL counts as a creation, too, so that all
// members of the parent count alike.  Makes only local MPI calls.
void created(Op op, const CommView& parent, MPI_Comm made, const Origin& origin, Site site) noexcept;

// Returns whether a call inside another MPI call comes from the application, in a callback.  MPI libraries create
// communicators for themselves through the same functions.
bool made_in_callback(Site caller) noexcept;

// MPI_Comm_idup: creating() assigns the number of the creation now.  The communicator exists when `request` completes;
// then creation_completed() registers it.  If the creation failed, the variable may not contain a communicator any
// more.
bool has_pending() noexcept;  // whether a communicator of MPI_Comm_idup is not finished
void creating(Op op, const CommView& parent, MPI_Comm* made, bool set_already, Payload payload, Site site) noexcept;
void creation_completed(Payload payload, bool succeeded) noexcept;

// Removes the handle from the map before MPI frees the communicator, because MPI may reuse the handle at once.  Returns
// its view, or null.  Afterwards, call after_comm_free() if MPI has freed it, or undo_comm_free() if that failed.
const CommView* before_comm_free(MPI_Comm comm) noexcept;
void after_comm_free(const CommView* view) noexcept;
void undo_comm_free(MPI_Comm comm, const CommView* view) noexcept;

void name_comm(MPI_Comm comm, const char* name) noexcept;
void before_win_free(MPI_Win win) noexcept;
void before_file_close(MPI_File file) noexcept;

}  // namespace commlens
