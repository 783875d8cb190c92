// SPDX-License-Identifier: Apache-2.0
#pragma once

// Communicators, datatypes, windows and files: freeing, naming, MPI_Comm_idup.

#include <mpi.h>

#include "core/mpi/creation.h"
#include "core/mpi/datatypes.h"
#include "core/mpi/family_tuning.h"
#include "core/mpi/wrap.h"

namespace commlens {
namespace handwritten {

template <class Next>
int comm_free(Next next, Op op, Site caller, MPI_Comm* comm) {
  Call call(op, caller);
  MPI_Comm handle = comm == nullptr ? api.comm_null : *comm;
  const CommView* const view = before_comm_free(handle);
  const FreeingComm outer = call.thread().freeing;  // this call may be in a callback of another MPI_Comm_free
  call.thread().freeing = {bits(handle), view};
  if (!call.nested()) call.start_under(view == nullptr ? 0 : view->index);
  const int rc = next(comm);
  call.thread().freeing = outer;
  if (!call.nested()) {
    call.stop();
    call.record(view == nullptr ? no_comm() : *view, Volume{});
  }
  if (view != nullptr) rc == MPI_SUCCESS ? after_comm_free(view) : undo_comm_free(handle, view);
  return rc;
}

template <class Next>
int comm_set_name(Next next, Op op, Site caller, MPI_Comm comm, const char* comm_name) {
  Call call(op, caller);
  if (call.nested()) return next(comm, comm_name);
  call.start_in(comm);
  const int rc = next(comm, comm_name);
  call.stop();
  call.record(comm_of(comm, rc, call.freed()), Volume{});
  if (rc == MPI_SUCCESS) name_comm(comm, comm_name);
  return rc;
}

template <class Next>
int type_free(Next next, Op op, Site caller, MPI_Datatype* datatype) {
  Call call(op, caller);
  if (datatype != nullptr) before_type_free(*datatype);
  if (call.nested()) return next(datatype);
  call.start();
  const int rc = next(datatype);
  call.stop();
  call.record(no_comm(), Volume{});
  return rc;
}

template <class Next>
int win_free(Next next, Op op, Site caller, MPI_Win* win) {
  Call call(op, caller);
  const CommView& comm = win == nullptr ? no_comm() : comm_of_win(*win);
  if (win != nullptr) before_win_free(*win);
  if (call.nested()) return next(win);
  call.start_under(comm.index);
  const int rc = next(win);
  call.stop();
  call.count_under(comm.index);
  if (rc != MPI_SUCCESS && comm.index != 0) made_window(*win, comm);
  return rc;
}

template <class Next>
int file_close(Next next, Op op, Site caller, MPI_File* fh) {
  Call call(op, caller);
  const CommView& comm = fh == nullptr ? no_comm() : comm_of_file(*fh);
  if (fh != nullptr) before_file_close(*fh);
  if (call.nested()) return next(fh);
  call.start_under(comm.index);
  const int rc = next(fh);
  call.stop();
  call.count_under(comm.index);
  if (rc != MPI_SUCCESS && comm.index != 0) made_file(*fh, comm);
  return rc;
}

// MPI_Comm_idup and MPI_Comm_idup_with_info.
template <class CallNext>
int idup_of(CallNext call_next, Op op, Site caller, MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  Call call(op, caller);
  if (call.nested()) return create_inside(call_next);
  MPI_Comm before = newcomm == nullptr ? api.comm_null : *newcomm;
  call.start_in(comm);
  const int rc = call_next();
  call.stop();
  const CommView& parent = comm_of(comm, rc, call.freed());
  Cell& cell = call.record(parent, Volume{});
  if (rc != MPI_SUCCESS || newcomm == nullptr || request == nullptr) return rc;
  const Payload payload = call.remember(*request, cell, RequestFlag::active | RequestFlag::awaited);
  if (payload == 0) {
    created(op, parent, *newcomm, identity::parent(), call.site());  // the request was complete at once
  } else {
    creating(op, parent, newcomm, *newcomm != before, payload, call.site());
  }
  return rc;
}

template <class Next>
int idup(Next next, Op op, Site caller, MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return idup_of([&] { return next(comm, newcomm, request); }, op, caller, comm, newcomm, request);
}

template <class Next>
int idup(Next next, Op op, Site caller, MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  return idup_of([&] { return next(comm, info, newcomm, request); }, op, caller, comm, newcomm, request);
}

}  // namespace handwritten
}  // namespace commlens
