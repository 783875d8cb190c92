// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion of requests: MPI_Wait, MPI_Test and their kin.

#include <mpi.h>
#include <algorithm>

#include "core/mpi/batch.h"
#include "core/mpi/creation.h"
#include "core/mpi/plain_completion.h"
#include "core/mpi/wrap.h"

namespace commlens {
namespace handwritten {

// Returns status i of those passed to MPI, or null if there is none.
inline const MPI_Status* status_at(const MPI_Status* statuses, int i) noexcept {
  return statuses == MPI_STATUSES_IGNORE || statuses == nullptr ? nullptr : statuses + i;
}

// A completion call inside another MPI call, in a callback, is not counted.  But its requests are complete, and MPI
// reuses their handles, so they are removed from the table.  Looks at the first `limit` requests only.  Not inlined:
// the array would be in the frame of every completion call.
template <class CallNext>
__attribute__((noinline)) int complete_in_callback(CallNext call_next, int count, const MPI_Request* array) {
  constexpr int limit = 64;
  RequestTable::Found found[limit];
  const int n = array == nullptr ? 0 : std::max(0, std::min(count, limit));
  for (int i = 0; i < n; ++i) {
    const bool is_one = array[i] != api.request_null && !is_shared(array[i]);
    found[i] = is_one ? requests.find(bits(array[i])) : RequestTable::Found{nullptr, 0};
  }
  const int rc = call_next();
  for (int i = 0; i < n; ++i) {
    const Payload payload = found[i].payload;
    if (payload == 0 || (payload & RequestFlag::persistent) != 0 || array[i] != api.request_null) continue;
    if ((payload & RequestFlag::awaited) != 0) {
      creation_completed(payload, rc == MPI_SUCCESS);
      drop_operation(payload & ~RequestFlag::all);
    }
    if ((payload & RequestFlag::message) != 0) stop_messages(comm_of_key(maker_of(payload)->key));
    RequestTable::release(found[i]);
  }
  return rc;
}

template <class Next>
__attribute__((noinline)) int wait_for_any_kind(Next next, Op op, Site caller, MPI_Request* request,
                                                MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([=] { return next(request, status); }, 1, request);
  Batch batch(call.thread(), 1, request);
  MPI_Status own;
  MPI_Status* const used = status == MPI_STATUS_IGNORE && batch.receives() ? &own : status;
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = next(request, used);
  call.stop();
  call.count_under(comm);
  if (rc == MPI_SUCCESS) {
    batch.finish(0, status_at(used, 0));
    batch.finish_shared(1);
  } else {
    batch.finish_failed(rc, nullptr);
  }
  return rc;
}

template <class Next>
int wait(Next next, Op op, Site caller, MPI_Request* request, MPI_Status* status) {
  int rc = 0;
  const auto call_next = [=](MPI_Status* used) { return next(request, used); };
  if (complete_plain(call_next, op, caller, 1, request, status, MPI_STATUS_IGNORE, &rc)) return rc;
  return wait_for_any_kind(next, op, caller, request, status);
}

template <class Next>
__attribute__((noinline)) int test_for_any_kind(Next next, Op op, Site caller, MPI_Request* request, int* flag,
                                                MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([=] { return next(request, flag, status); }, 1, request);
  Batch batch(call.thread(), 1, request);
  MPI_Status own;
  MPI_Status* const used = status == MPI_STATUS_IGNORE && batch.receives() ? &own : status;
  const std::uint32_t comm = batch.comm();
  call.start_unwaiting(comm);
  const int rc = next(request, flag, used);
  call.count_unwaiting(comm);
  if (rc != MPI_SUCCESS) {
    batch.finish_failed(rc, nullptr);
  } else if (*flag != 0) {
    batch.finish(0, status_at(used, 0));
    batch.finish_shared(1);
  }
  return rc;
}

template <class Next>
int test(Next next, Op op, Site caller, MPI_Request* request, int* flag, MPI_Status* status) {
  int rc = 0;
  const auto call_next = [=](MPI_Status* used) { return next(request, flag, used); };
  if (test_plain(call_next, op, caller, request, flag, status, &rc)) return rc;
  return test_for_any_kind(next, op, caller, request, flag, status);
}

// Begins and ends the call `next()`, which waits or not.
template <bool waits, class Next>
__attribute__((always_inline)) inline int counted(Call& call, std::uint32_t comm, Next next) {
  waits ? call.start_under(comm) : call.start_unwaiting(comm);
  const int rc = next();
  if (!waits) {
    call.count_unwaiting(comm);
    return rc;
  }
  call.stop();
  call.count_under(comm);
  return rc;
}

// MPI_Waitall and MPI_Testall, which only differ in the flag.
template <bool waits, class CallNext, class Done>
__attribute__((always_inline)) inline int complete_all(CallNext call_next, Done done, Op op, Site caller, int count,
                                                       MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  Call call(op, caller);
  if (call.nested()) {
    return complete_in_callback([=] { return call_next(array_of_statuses); }, count, array_of_requests);
  }
  Batch batch(call.thread(), count, array_of_requests);
  MPI_Status* const used =
      array_of_statuses == MPI_STATUSES_IGNORE && batch.receives() ? batch.statuses() : array_of_statuses;
  const std::uint32_t comm = batch.comm();
  const int rc = counted<waits>(call, comm, [&] { return call_next(used); });
  if (rc == MPI_SUCCESS && done()) {
    for (int i = 0; i < batch.size(); ++i) batch.finish_known(i, status_at(used, i));
    batch.finish_shared(batch.shared());
  } else if (rc != MPI_SUCCESS) {
    batch.finish_failed(rc, status_at(used, 0));
  }
  return rc;
}

template <class Next>
__attribute__((noinline)) int wait_for_all_kinds(Next next, Op op, Site caller, int count,
                                                 MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  return complete_all<true>([=](MPI_Status* statuses) { return next(count, array_of_requests, statuses); },
                            [] { return true; }, op, caller, count, array_of_requests, array_of_statuses);
}

template <class Next>
int waitall(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  int rc = 0;
  const auto call_next = [=](MPI_Status* statuses) { return next(count, array_of_requests, statuses); };
  if (complete_plain(call_next, op, caller, count, array_of_requests, array_of_statuses, MPI_STATUSES_IGNORE, &rc)) {
    return rc;
  }
  return wait_for_all_kinds(next, op, caller, count, array_of_requests, array_of_statuses);
}

template <class Next>
int testall(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, int* flag,
            MPI_Status* array_of_statuses) {
  return complete_all<false>([&](MPI_Status* statuses) { return next(count, array_of_requests, flag, statuses); },
                             [&] { return *flag != 0; }, op, caller, count, array_of_requests, array_of_statuses);
}

// MPI_Waitany and MPI_Testany.
template <bool waits, class CallNext, class Done>
int complete_any(CallNext call_next, Done done, Op op, Site caller, int count, MPI_Request* array_of_requests,
                 int* index, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([=] { return call_next(status); }, count, array_of_requests);
  Batch batch(call.thread(), count, array_of_requests);
  MPI_Status own;
  MPI_Status* const used = status == MPI_STATUS_IGNORE && batch.receives() ? &own : status;
  const std::uint32_t comm = batch.comm();
  const int rc = counted<waits>(call, comm, [&] { return call_next(used); });
  if (rc != MPI_SUCCESS) {
    batch.finish_failed(rc, nullptr);
  } else if (done() && *index != MPI_UNDEFINED && batch.size() != 0) {
    if (batch[*index].payload == 0) {
      batch.finish_shared(1);
    } else {
      batch.finish(*index, status_at(used, 0));
    }
  }
  return rc;
}

template <class Next>
int waitany(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, int* index, MPI_Status* status) {
  return complete_any<true>([&](MPI_Status* s) { return next(count, array_of_requests, index, s); },
                            [] { return true; }, op, caller, count, array_of_requests, index, status);
}

template <class Next>
int testany(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, int* index, int* flag,
            MPI_Status* status) {
  return complete_any<false>([&](MPI_Status* s) { return next(count, array_of_requests, index, flag, s); },
                             [&] { return *flag != 0; }, op, caller, count, array_of_requests, index, status);
}

// MPI_Waitsome and MPI_Testsome.
template <bool waits, class Next>
int complete_some(Next next, Op op, Site caller, int incount, MPI_Request* array_of_requests, int* outcount,
                  int* array_of_indices, MPI_Status* array_of_statuses) {
  Call call(op, caller);
  if (call.nested()) {
    return complete_in_callback(
        [=] { return next(incount, array_of_requests, outcount, array_of_indices, array_of_statuses); }, incount,
        array_of_requests);
  }
  Batch batch(call.thread(), incount, array_of_requests);
  MPI_Status* const used =
      array_of_statuses == MPI_STATUSES_IGNORE && batch.receives() ? batch.statuses() : array_of_statuses;
  const std::uint32_t comm = batch.comm();
  const int rc =
      counted<waits>(call, comm, [&] { return next(incount, array_of_requests, outcount, array_of_indices, used); });
  const bool some_failed = Batch::in_status(rc);
  if (rc != MPI_SUCCESS && !some_failed) {
    batch.finish_failed(rc, nullptr);
    return rc;
  }
  if (*outcount == MPI_UNDEFINED || batch.size() == 0) return rc;
  int shared = 0;
  for (int i = 0; i < *outcount; ++i) {
    const int at = array_of_indices[i];
    if (batch[at].payload == 0) ++shared;
    const MPI_Status* const status = status_at(used, i);
    const bool failed = some_failed && status != nullptr && status->MPI_ERROR != MPI_SUCCESS;
    batch.finish(at, failed ? nullptr : status, !failed);
  }
  batch.finish_shared(shared);
  return rc;
}

template <class Next>
int waitsome(Next next, Op op, Site caller, int incount, MPI_Request* array_of_requests, int* outcount,
             int* array_of_indices, MPI_Status* array_of_statuses) {
  return complete_some<true>(next, op, caller, incount, array_of_requests, outcount, array_of_indices,
                             array_of_statuses);
}

template <class Next>
int testsome(Next next, Op op, Site caller, int incount, MPI_Request* array_of_requests, int* outcount,
             int* array_of_indices, MPI_Status* array_of_statuses) {
  return complete_some<false>(next, op, caller, incount, array_of_requests, outcount, array_of_indices,
                              array_of_statuses);
}

}  // namespace handwritten
}  // namespace commlens
