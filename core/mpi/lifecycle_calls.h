// SPDX-License-Identifier: Apache-2.0
#pragma once

// The calls that begin, end and steer the measurement.

#include <mpi.h>

#include "core/job/pcontrol.h"
#include "core/mpi/wrap.h"
#include "core/state/events.h"

namespace commlens {
namespace handwritten {

// For the calls that begin and end the measurement; in lifecycle.cpp.
void initialised(Ticks before, Ticks after) noexcept;
void finalising() noexcept;
void finish() noexcept;
void aborting(MPI_Comm comm, int errorcode) noexcept;
void session_began(std::uint64_t session, Ticks before, Ticks after) noexcept;
void session_ending() noexcept;

// Leaves out the events of a call that begins the measurement: they are not between MPI_Init and MPI_Finalize.
inline void leave_out_events(Call& call) noexcept {
  if (counts_events()) note_events(call.thread(), make_key(0, 0, 0, uncounted_region));
}

template <class Next, class... Arguments>
int init(Next next, Op op, Site caller, Arguments... arguments) {
  Call call(op, caller);
  if (call.nested()) return next(arguments...);
  call.start();
  const Ticks before = now();
  const int rc = next(arguments...);
  if (rc == MPI_SUCCESS) initialised(before, now());
  leave_out_events(call);
  return rc;
}

// The call lasts until `next` returns, so calls in callbacks that MPI_Finalize makes are nested in it.
template <class Next>
int finalize(Next next, Op op, Site caller) {
  Call call(op, caller);
  if (!call.nested()) {
    call.start();
    finalising();
  }
  return next();
}

// Session is MPI_Session; a template parameter, because an older mpi.h does not declare it.
template <class Next, class Session>
int session_init(Next next, Op op, Site caller, MPI_Info info, MPI_Errhandler errhandler, Session* session) {
  Call call(op, caller);
  if (call.nested()) return next(info, errhandler, session);
  call.start();
  const Ticks before = now();
  const int rc = next(info, errhandler, session);
  if (rc == MPI_SUCCESS) session_began(bits(*session), before, now());
  leave_out_events(call);
  return rc;
}

template <class Next, class Session>
int session_finalize(Next next, Op op, Site caller, Session* session) {
  Call call(op, caller);
  if (call.nested()) return next(session);
  const std::uint64_t known = session == nullptr ? 0 : bits(*session);
  session_ending();
  const int rc = next(session);
  if (rc != MPI_SUCCESS) session_began(known, now(), now());  // it goes on, for example because it is still in use
  return rc;
}

// Passes the call on, too: the MPI library ignores it, but another tool may use it.
template <class Next>
int pcontrol(Next next, Op op, Site caller, int level, const void* argument) {
  {
    Call call(op, caller);
    if (!call.nested()) commlens::pcontrol(level, argument, caller);
  }
  return reinterpret_cast<int (*)(int, ...)>(next)(level, argument);
}

template <class Next>
int abort(Next next, Op op, Site caller, MPI_Comm comm, int errorcode) {
  {
    Call call(op, caller);
    if (!call.nested()) aborting(comm, errorcode);
  }
  return next(comm, errorcode);
}

}  // namespace handwritten
}  // namespace commlens
