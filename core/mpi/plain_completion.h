// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion calls whose requests are plain: neither persistent nor cancelled, without an operation to be sampled, and
// all of one communicator.  That is known before MPI is called.  Most calls are like that, and this path has few
// instructions per request.

#include <mpi.h>

#include "core/mpi/batch.h"
#include "core/mpi/wrap.h"

namespace commlens {

struct PlainRequests {
  RequestTable::Found* found;  // of each; payload 0: null, shared or unknown
  Payload all_flags;
  std::uint32_t comm;  // 0: they are not plain
  int shared;

  bool receives() const noexcept { return (all_flags & RequestFlag::receives) != 0; }
};

// Looks the requests up.  found: memory for n of them
__attribute__((always_inline)) inline PlainRequests find_plain(RequestTable::Found* found, int n,
                                                               const MPI_Request* handles) noexcept {
  constexpr Payload kinds =
      RequestFlag::active | RequestFlag::persistent | RequestFlag::awaited | RequestFlag::cancelled;
  PlainRequests plain{found, 0, 0, 0};
  Payload last = 0;  // the cell that made the request before
  for (int i = 0; i < n; ++i) {
    const MPI_Request handle = handles[i];
    if (may_be_predefined(handle)) {
      const bool is_null = handle == api.request_null;
      if (is_null || is_shared(handle)) {
        if (!is_null) ++plain.shared;
        found[i].payload = 0;
        continue;
      }
    }
    const RequestTable::Found at = requests.find(bits(handle));
    if (__builtin_expect(at.payload == 0, 0)) {
      found[i].payload = 0;
      continue;
    }
    if (__builtin_expect((at.payload & kinds) != RequestFlag::active, 0)) return {found, 0, 0, 0};
    found[i] = at;
    plain.all_flags |= at.payload;
    const Payload maker = at.payload & pointer_bits;
    if (maker == last) continue;
    last = maker;
    const std::uint32_t comm = comm_of_key(reinterpret_cast<const Cell*>(maker)->key);
    if (__builtin_expect(comm == 0 || (plain.comm != 0 && plain.comm != comm), 0)) return {found, 0, 0, 0};
    plain.comm = comm;
  }
  return plain;
}

// Not inlined: what is rare, so that finish_plain() needs no registers for it.
__attribute__((noinline, cold)) inline void finish_apart(Thread& t, RequestTable::Found* found, int n,
                                                         const MPI_Request* handles,
                                                         const MPI_Status* statuses) noexcept {
  Batch batch(t, found, n, handles);
  for (int i = 0; i < n; ++i) batch.finish_known(i, statuses == nullptr ? nullptr : statuses + i);
}
__attribute__((noinline, cold)) inline void fail_apart(Thread& t, RequestTable::Found* found, int n,
                                                       const MPI_Request* handles, int rc,
                                                       const MPI_Status* statuses) noexcept {
  Batch(t, found, n, handles).finish_failed(rc, statuses);
}
__attribute__((noinline)) inline void credit_arrival_apart(Thread& t, Payload payload, const MPI_Status& status,
                                                           Bytes bytes) noexcept {
  credit_arrival(t, payload, status, bytes);
}

// All requests are complete.  statuses: may be anything if none of them receives
__attribute__((always_inline)) inline void finish_plain(Thread& t, const PlainRequests& plain, int n,
                                                        const MPI_Request* handles,
                                                        const MPI_Status* statuses) noexcept {
  // As in credit().
  if (__builtin_expect(!is_only_thread() || t.table.left_out != 0 || !matrix_choice.peers, 0)) {
    finish_apart(t, plain.found, n, handles, plain.receives() ? statuses : nullptr);
  } else {
    const Arrival* arrival = &t.call_cache->arrivals[0];
    for (int i = 0; i < n; ++i) {
      const RequestTable::Found at = plain.found[i];
      if (at.payload == 0) continue;
      if ((at.payload & RequestFlag::receives) != 0) {
        const MPI_Status& status = statuses[i];
        const Bytes bytes = received_bytes(status);
        const int from = status.MPI_SOURCE;
        auto* const maker = reinterpret_cast<Cell*>(at.payload & pointer_bits);
        maker->bytes_received += bytes;
        if ((at.payload & RequestFlag::message) != 0) {
          if (!arrival->is(maker, from, bytes)) arrival = &t.call_cache->arrival(maker, from);
          if (__builtin_expect(arrival->is(maker, from, bytes), 1)) {
            add_message(*arrival->in, bytes);
            Channel& channel = *arrival->in->channel;
            if (count_and_check_due(channel, status.MPI_TAG)) take_completed(t, channel, at.payload, status.MPI_TAG);
          } else {
            credit_arrival_apart(t, at.payload, status, bytes);
          }
        }
      }
      RequestTable::release(at);
    }
  }
  if (plain.shared != 0) t.complete.remove(static_cast<std::uint64_t>(plain.shared));
}

// Returns whether the call may be plain.  Does not look at its requests.
inline bool may_be_plain(const Thread* thread, int n, const MPI_Request* handles, const MPI_Status* statuses,
                         const MPI_Status* ignore) noexcept {
  if (!has_plain_calls || !is_plain_call(thread)) return false;
  if (!frame_tells_sp && must_locate_calls) return false;  // see chosen()
  return n > 0 && handles != nullptr && (statuses != nullptr || statuses == ignore);
}

// Returns the call path of a plain call; 0, which no call in the cache has: it is not known yet.  Not inlined: most
// programs have none.
__attribute__((noinline)) inline Site known_path(Thread& t, Site caller, const char* frame) noexcept {
  const KnownPath* const known = t.paths->find(caller, frame);
  return known != nullptr ? known->path : 0;
}

// MPI_Wait and MPI_Waitall.  Returns false, and has done nothing, if the requests are not plain or the call is not in
// the call cache.  ignore: what the application passes if it wants no statuses
template <class CallNext>
__attribute__((always_inline)) inline bool complete_plain(CallNext call_next, Op op, Site caller, int n,
                                                          const MPI_Request* handles, MPI_Status* statuses,
                                                          const MPI_Status* ignore, int* result) noexcept {
  asm volatile(".cfi_personality 0x1b, commlens_personality");
  if (__builtin_expect(!may_be_plain(current_thread, n, handles, statuses, ignore), 0)) return false;
  Thread& t = *current_thread;
  const bool is_wait = __builtin_constant_p(n) && n == 1;  // needs no scratch memory
  RequestTable::Found one;
  MPI_Status own;
  auto* const found = is_wait ? &one : static_cast<RequestTable::Found*>(scratch(t, Batch::scratch_size(n)));
  if (__builtin_expect(found == nullptr, 0)) return false;
  const PlainRequests plain = find_plain(found, n, handles);
  if (__builtin_expect(plain.comm == 0, 0)) return false;
  char* const frame = static_cast<char*>(__builtin_frame_address(0));
  const Site site = __builtin_expect(must_locate_calls, 0) ? known_path(t, caller, frame) : caller;
  const std::uint64_t freed = HandleMap::freed.load(std::memory_order_acquire);
  CachedCall* const r = t.call_cache->find(site, CachedCall::subject_of(op, plain.comm), freed);
  if (__builtin_expect(r == nullptr, 0)) return false;
  if (statuses == ignore && plain.receives()) statuses = is_wait ? &own : reinterpret_cast<MPI_Status*>(found + n);
  const std::size_t taken = is_wait ? 0 : take_scratch(t);
  t.call_cache->look_ahead(*r);
  t.enter(frame);
  begin_call(t.current, plain.comm, time_stamp(), site, op, CurrentCall::index);
  const int rc = call_next(statuses);
  const Ticks end = time_stamp();
  if (__builtin_expect(rc == MPI_SUCCESS && r->region == t.region() && !t.is_due(end), 1)) {
    count_as<CachedCall::nothing>(t, *r, end);
  } else {
    count_late(t, *r, CachedCall::nothing, end, rc == MPI_SUCCESS, 0, -1, 0);
  }
  if (__builtin_expect(rc == MPI_SUCCESS, 1)) {
    finish_plain(t, plain, n, handles, statuses);
  } else {
    fail_apart(t, found, n, handles, rc, statuses == ignore ? nullptr : statuses);
  }
  if (!is_wait) give_scratch_back(t, found, taken);
  t.outermost = nullptr;
  *result = rc;
  return true;
}

// Not inlined: most tests find nothing.  rc: what MPI returned
__attribute__((noinline)) inline void finish_test(Thread& t, RequestTable::Found found, const MPI_Request* handle,
                                                  int rc, const MPI_Status* status) noexcept {
  if (rc != MPI_SUCCESS) return fail_apart(t, &found, 1, handle, rc, nullptr);
  finish_plain(t, {&found, found.payload, 0, 0}, 1, handle, status);
}

// The same for MPI_Test.  Most of these calls find nothing complete and go untimed.
template <class CallNext>
__attribute__((always_inline)) inline bool test_plain(CallNext call_next, Op op, Site caller, const MPI_Request* handle,
                                                      const int* flag, MPI_Status* status, int* result) noexcept {
  constexpr unsigned parts = CachedCall::may_skip;
  asm volatile(".cfi_personality 0x1b, commlens_personality");
  if (__builtin_expect(!may_be_plain(current_thread, 1, handle, status, MPI_STATUS_IGNORE), 0)) return false;
  Thread& t = *current_thread;
  RequestTable::Found found;
  const PlainRequests plain = find_plain(&found, 1, handle);
  if (__builtin_expect(plain.comm == 0, 0)) return false;
  char* const frame = static_cast<char*>(__builtin_frame_address(0));
  const Site site = __builtin_expect(must_locate_calls, 0) ? known_path(t, caller, frame) : caller;
  const std::uint64_t freed = HandleMap::freed.load(std::memory_order_acquire);
  CachedCall* const r = t.call_cache->find(site, CachedCall::subject_of(op, plain.comm), freed);
  if (__builtin_expect(r == nullptr || r->region != t.region(), 0)) return false;
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE && plain.receives()) status = &own;
  t.call_cache->look_ahead(*r);
  t.enter(frame);
  int rc = 0;
  if (__builtin_expect(goes_untimed<parts>(t, *r), 1)) {
    begin_call(t.current, plain.comm, t.current.since + 1, site, op, CurrentCall::index, true);
    rc = call_next(status);
    if (__builtin_expect(rc == MPI_SUCCESS && is_as_decided<parts>(t, *r), 1)) {
      count_untimed<parts>(t, *r);
    } else {
      count_untimed_late(t, *r, parts, rc == MPI_SUCCESS);
    }
  } else {
    begin_call(t.current, plain.comm, time_stamp(), site, op, CurrentCall::index);
    rc = call_next(status);
    const Ticks end = time_stamp();
    if (__builtin_expect(rc == MPI_SUCCESS && r->region == t.region() && !t.is_due(end), 1)) {
      count_timed<parts>(t, *r, end);
    } else {
      count_late(t, *r, parts | CachedCall::stays, end, rc == MPI_SUCCESS, 0, -1, 0);
    }
  }
  if (rc != MPI_SUCCESS || *flag != 0) finish_test(t, found, handle, rc, status);
  t.outermost = nullptr;
  *result = rc;
  return true;
}

}  // namespace commlens
