// SPDX-License-Identifier: Apache-2.0
#pragma once

// Start, cancel, free and query of requests.

#include <mpi.h>

#include "core/mpi/batch.h"
#include "core/mpi/creation.h"
#include "core/mpi/wrap.h"

namespace commlens {
namespace handwritten {

// Calls that change one request; `after` updates it if the call succeeded.
template <class Next, class After>
int to_request(Next next, Op op, Site caller, MPI_Request* request, After after) {
  Call call(op, caller);
  if (call.nested()) return next(request);
  Batch batch(call.thread(), 1, request);
  const std::uint32_t comm = batch.owner();
  call.start_under(comm);
  const int rc = next(request);
  call.stop();
  call.count_under(comm);
  if (rc == MPI_SUCCESS) after(batch);
  return rc;
}

template <class Next>
int start(Next next, Op op, Site caller, MPI_Request* request) {
  Call call(op, caller);
  if (call.nested()) return next(request);
  Batch batch(call.thread(), 1, request);
  const std::uint32_t comm = batch.owner();
  const Starting starting = batch.starting();
  call.start_under(comm);
  const int rc = next(request);
  call.stop();
  call.count_under(comm);
  rc == MPI_SUCCESS ? batch.started() : batch.start_failed();
  return rc;
}

template <class Next>
int cancel(Next next, Op op, Site caller, MPI_Request* request) {
  return to_request(next, op, caller, request, [](Batch& batch) { batch.mark_cancelled(); });
}

template <class Next>
int request_free(Next next, Op op, Site caller, MPI_Request* request) {
  return to_request(next, op, caller, request, [](Batch& batch) { batch.forget(); });
}

template <class Next>
int startall(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests) {
  Call call(op, caller);
  if (call.nested()) return next(count, array_of_requests);
  Batch batch(call.thread(), count, array_of_requests);
  const Starting starting = batch.starting();
  call.start();
  const int rc = next(count, array_of_requests);
  call.stop();
  rc == MPI_SUCCESS ? batch.started() : batch.start_failed();
  call.count_under(batch.comm());
  return rc;
}

// Calls that query one request, or work on a part of it.
template <class Next, class... Arguments>
int of_request(Next next, Op op, Site caller, MPI_Request request, Arguments... arguments) {
  Call call(op, caller);
  if (call.nested()) return next(arguments...);
  Batch batch(call.thread(), 1, &request);
  const std::uint32_t comm = batch.owner();
  call.start_under(comm);
  const int rc = next(arguments...);
  call.stop();
  call.count_under(comm);
  return rc;
}

// MPI_Request_get_status may report that a communicator of MPI_Comm_idup exists.  The application may then use it, and
// free it, before it completes the request.
template <class Next>
int get_status(Next next, Op op, Site caller, MPI_Request request, int* flag, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return next(request, flag, status);
  Batch batch(call.thread(), 1, &request);
  const std::uint32_t comm = batch.owner();
  call.start_under(comm);
  const int rc = next(request, flag, status);
  call.stop();
  call.count_under(comm);
  if (rc == MPI_SUCCESS && *flag != 0 && (batch[0].payload & RequestFlag::awaited) != 0) {
    creation_completed(batch[0].payload, true);
  }
  return rc;
}

// MPI_Request_get_status_all, _any and _some, too, may report that a communicator of MPI_Comm_idup exists.
inline void note_reported(const Batch& batch, int i) noexcept {
  if (i < 0 || i >= batch.size() || (batch[i].payload & RequestFlag::awaited) == 0) return;
  creation_completed(batch[i].payload, true);
}
inline void note_all_reported(Op, const Batch& batch, const int* flag, const MPI_Status*) noexcept {
  if (*flag == 0) return;
  for (int i = 0; i < batch.size(); ++i) note_reported(batch, i);
}
inline void note_all_reported(Op op, const Batch& batch, const int* first, const int* second,
                              const MPI_Status*) noexcept {
  if (op == op::MPI_Request_get_status_any) {
    if (*second != 0) note_reported(batch, *first);
    return;
  }
  for (int i = 0; i < *first; ++i) note_reported(batch, second[i]);  // *first may be MPI_UNDEFINED, which is negative
}

template <class Next, class Requests, class... Rest>
int of_requests(Next next, Op op, Site caller, int count, Requests array_of_requests, Rest... rest) {
  Call call(op, caller);
  if (call.nested()) return next(count, array_of_requests, rest...);
  Batch batch(call.thread(), count, array_of_requests);
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = next(count, array_of_requests, rest...);
  call.stop();
  call.count_under(comm);
  if (rc == MPI_SUCCESS) note_all_reported(op, batch, rest...);
  return rc;
}

}  // namespace handwritten
}  // namespace commlens
