// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wrappers of plain calls that are in the call cache.

#include "core/mpi/wrap.h"

namespace commlens {

// A plain call that is in the call cache.  Calls no function before MPI, so that the arguments stay in their registers.
// After MPI it needs only the cache entry.
template <unsigned parts, bool by_path>
class CachedPath {
 public:
  template <class... Words>
  __attribute__((always_inline)) CachedPath(Op op, Site caller, std::uint64_t object, Words... words) noexcept
      : thread_(current_thread), site_(caller) {
    asm volatile(".cfi_personality 0x1b, commlens_personality");
    if (__builtin_expect(!is_plain_call(thread_), 0)) return;
    Site site = caller;
    if constexpr (by_path) {
      const KnownPath* const known = thread_->paths->find(caller, static_cast<const char*>(__builtin_frame_address(0)));
      if (__builtin_expect(known == nullptr, 0)) return;
      site = known->path;
    }
    const std::uint64_t subject = CachedCall::subject_of(op, object);
    const std::uint64_t freed = HandleMap::freed.load(std::memory_order_acquire);
    cached_ = thread_->call_cache->find(site, subject, freed, words...);
  }
  bool is_cached() const noexcept { return __builtin_expect(cached_ != nullptr, 1); }

  __attribute__((always_inline)) void start_in(Op op, MPI_Comm comm) noexcept {
    begin(op, bits(comm), CurrentCall::handle);
  }
  __attribute__((always_inline)) void start_under_comm(Op op) noexcept {
    begin(op, comm_of_key(cached_->cell->key), CurrentCall::index);
  }
  __attribute__((always_inline)) void send_to(int rank, int tag) noexcept { thread_->current.to = {rank, tag}; }
  __attribute__((always_inline)) void receive_from(int rank, int tag) noexcept { thread_->current.from = {rank, tag}; }
  __attribute__((always_inline)) void send_tag(int tag) noexcept { thread_->current.to.tag = tag; }
  // Counts the call and returns its cell.
  COMMLENS_IN_REGISTERS Cell& count(int rc) noexcept {
    const Ticks end = time_stamp();
    Cell* cell = cached_->cell;
    if (__builtin_expect(rc == MPI_SUCCESS && is_as_cached(end), 1)) {
      if constexpr ((parts & CachedCall::may_skip) != 0) {
        count_timed<parts>(*thread_, *cached_, end);
      } else {
        count_as<parts>(*thread_, *cached_, end);
      }
    } else {
      cell = count_late(*thread_, *cached_, parts, end, rc == MPI_SUCCESS, cached_->received, cached_->source, 0);
    }
    thread_->outermost = nullptr;
    return *cell;
  }

  // A call that goes untimed has a path of its own, so that others need not remember how they were timed.
  bool goes_untimed() const noexcept { return commlens::goes_untimed<parts>(*thread_, *cached_); }
  __attribute__((always_inline)) void start_untimed_in(Op op, MPI_Comm comm) noexcept {
    begin_untimed(op, bits(comm), CurrentCall::handle);
  }
  __attribute__((always_inline)) void start_untimed_under_comm(Op op) noexcept {
    begin_untimed(op, comm_of_key(cached_->cell->key), CurrentCall::index);
  }
  COMMLENS_IN_REGISTERS Cell& count_untimed(int rc) noexcept {
    Cell* cell = nullptr;
    if (__builtin_expect(rc == MPI_SUCCESS && is_as_decided<parts>(*thread_, *cached_), 1)) {
      cell = &commlens::count_untimed<parts>(*thread_, *cached_);
    } else {
      cell = count_untimed_late(*thread_, *cached_, parts, rc == MPI_SUCCESS);
    }
    thread_->outermost = nullptr;
    return *cell;
  }

  // The same for a procedure that is sampled; returns `rc`.  What is rare is in functions that return it, too: the
  // wrapper ends with a jump to them, and need not save registers for a call.
  COMMLENS_IN_REGISTERS int count_sampled(int rc) noexcept {
    const Ticks end = time_stamp();
    if (__builtin_expect(rc != MPI_SUCCESS || !is_as_cached(end), 0)) {
      return count_sampled_late(rc, *thread_, *cached_, parts, end, rc == MPI_SUCCESS);
    }
    count_as<parts>(*thread_, *cached_, end);
    thread_->outermost = nullptr;
    if (count_and_check_due(*cached_->stratum)) return sample_counted(rc, *thread_, *cached_, end);
    return rc;
  }
  COMMLENS_IN_REGISTERS void count(int rc, const StatusFor& status) noexcept {
    const Ticks end = time_stamp();
    if (__builtin_expect(rc == MPI_SUCCESS && is_as_cached(end), 1)) {
      count_as<parts>(*thread_, *cached_, end, status.received(), status.source(), status.tag());
    } else if (rc == MPI_SUCCESS) {
      count_late(*thread_, *cached_, parts, end, true, status.received(), status.source(), status.tag());
    } else {
      count_late(*thread_, *cached_, parts, end, false, 0, -1, 0);
    }
    thread_->outermost = nullptr;
  }
  COMMLENS_IN_REGISTERS void remember(MPI_Request request, Cell& maker, Payload flags) noexcept {
    commlens::remember(*thread_, request, maker, flags);
  }
  COMMLENS_IN_REGISTERS void remember_operation(MPI_Request request, Cell& maker, Payload flags) noexcept {
    commlens::remember_operation(*thread_, request, maker, flags,
                                 {cached_->operations, static_cast<std::uint32_t>(cached_->source)});
  }

 private:
  // False if a callback has changed the region, or if this thread has something else to do now, for example because
  // another thread has paused counting.
  bool is_as_cached(Ticks end) const noexcept { return cached_->region == thread_->region() && !thread_->is_due(end); }
  __attribute__((always_inline)) void enter() noexcept {
    thread_->call_cache->look_ahead(*cached_);
    thread_->enter(static_cast<char*>(__builtin_frame_address(0)));
  }
  __attribute__((always_inline)) void begin(Op op, std::uint64_t comm, CurrentCall::CommBy comm_by) noexcept {
    enter();
    begin_call(thread_->current, comm, time_stamp(), by_path ? cached_->site : site_, op, comm_by);
  }
  __attribute__((always_inline)) void begin_untimed(Op op, std::uint64_t comm, CurrentCall::CommBy comm_by) noexcept {
    enter();
    constexpr bool is_begin_known = (parts & CachedCall::posts) != 0;
    const Ticks since = is_begin_known ? time_stamp() : thread_->current.since + 1;
    begin_call(thread_->current, comm, since, by_path ? cached_->site : site_, op, comm_by, !is_begin_known);
  }

  Thread* const thread_;
  const Site site_;
  CachedCall* cached_ = nullptr;
};

}  // namespace commlens
