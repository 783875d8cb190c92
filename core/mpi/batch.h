// SPDX-License-Identifier: Apache-2.0
#pragma once

// The requests of one completion or start call, and how their bytes and messages are counted.

#include <algorithm>

#include "core/mpi/creation.h"
#include "core/mpi/wrap.h"

namespace commlens {

// Adds bytes to the cell of the procedure that created a request.  Uses this thread's own table, because `maker` may be
// a cell of another thread.  Cells with equal keys become one row when the profile is collected.
inline void credit(Thread& t, Cell& maker, Bytes sent, Bytes received) noexcept {
  if ((sent | received) == 0) return;
  // A cell that was evicted from the index is no longer part of the time slices.
  const bool is_here = is_only_thread() && t.table.left_out == 0;
  Cell& cell = is_here ? maker : *find_cell(t.table, maker.key, maker.site);
  cell.bytes_sent += sent;
  cell.bytes_received += received;
}

// Cold.  What follows from the completion of a request with RequestFlag::awaited.
void awaited_completed(Thread& t, Payload payload, bool succeeded) noexcept;

// Cold.  A persistent collective has started, and is to be sampled.  Returns the flags to add to its request.
Payload begin_started(Thread& t, const PersistentRequest& p, Payload payload) noexcept;

// Cold.  Samples a message that the current call has received for a request.
void take_completed(Thread& t, Channel& channel, Payload payload, int tag) noexcept;

// The same for the message of a request, to or from one process.
void credit_departure(Thread& t, const PersistentRequest& p) noexcept;  // cold
inline void credit_arrival(Thread& t, Payload payload, const MPI_Status& status, Bytes bytes) noexcept {
  const int from = status.MPI_SOURCE;
  if (!matrix_choice.peers || from < 0) return;
  const Cell& maker = *maker_of(payload);
  const PeerCell* const in = count_received_of(t, maker, from, bytes);
  const int tag = status.MPI_TAG;
  if (__builtin_expect(in == nullptr, 0)) {
    pass_message(t, Flow::received, comm_of_key(maker.key), static_cast<std::uint32_t>(from), tag);
  } else if (count_and_check_due(*in->channel, tag)) {
    take_completed(t, *in->channel, payload, tag);
  }
}

// The same for a collective, by its shape.
inline void credit_collective(Thread& t, const PersistentRequest& p) noexcept {
  if (!matrix_choice.peers || p.shape == Flow::count) return;
  const Key maker = p.maker->key;
  count_shape_of(t, maker, p.shape, p.exchanged);
  for (const Share* s = p.shares; s != nullptr && s->peer >= 0; ++s)
    count_message_of(t, maker, Flow::share, op_of_key(maker), s->peer, s->bytes);
}

// The requests of one completion or start call.
class Batch {
 public:
  Batch(Thread& t, int n, const MPI_Request* handles) noexcept : thread_(t), handles_(handles) {
    if (n <= 0 || handles == nullptr) return;
    found_ = n == 1 ? &one_ : static_cast<RequestTable::Found*>(scratch(t, scratch_size(n)));
    if (found_ == nullptr) return;  // no memory: the call is counted under no communicator
    if (n > 1) taken_ = take_scratch(t);
    n_ = n;
    for (int i = 0; i < n; ++i) {
      found_[i] = {nullptr, 0};
      if (may_be_predefined(handles[i])) {
        if (handles[i] == api.request_null) continue;
        if (is_shared(handles[i])) {
          ++shared_;
          continue;
        }
      }
      found_[i] = requests.find(bits(handles[i]));
      all_flags_ |= found_[i].payload;
      if (found_[i].payload != 0) consider(i);
    }
  }

  // Of requests that have been looked up already.
  Batch(Thread& t, RequestTable::Found* found, int n, const MPI_Request* handles) noexcept
      : thread_(t), handles_(handles), found_(found), n_(n) {}

  ~Batch() {
    if (taken_ != 0) give_scratch_back(thread_, found_, taken_);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Returns the bytes that a call with n requests needs: for their entries, then a status of each, then communicators.
  static std::size_t scratch_size(int n) noexcept {
    return static_cast<std::size_t>(n) * (sizeof(RequestTable::Found) + sizeof(MPI_Status) + sizeof(std::uint32_t));
  }

  // True if the bytes of a request will be read from its status.
  bool receives() const noexcept { return (all_flags_ & RequestFlag::receives) != 0; }

  // Memory for one status per request; behind the other scratch arrays.
  MPI_Status* statuses() noexcept { return n_ == 1 ? &one_status_ : reinterpret_cast<MPI_Status*>(found_ + n_); }

  // Returns the communicator under which this call is counted: that of its active requests, or their communicator set.
  __attribute__((always_inline)) std::uint32_t comm() noexcept {
    return __builtin_expect(!is_mixed_ && (only_ != 0 || shared_ == 0), 1) ? only_ : comm_of_several();
  }

  // Call when request i is complete.  status: null if it contains nothing that is needed.
  void finish(int i, const MPI_Status* status, bool succeeded = true) noexcept {
    if (i >= 0 && i < n_) finish_known(i, status, succeeded);
  }
  __attribute__((always_inline)) void finish_known(int i, const MPI_Status* status, bool succeeded = true) noexcept {
    const RequestTable::Found f = found_[i];
    if (f.payload == 0) return;
    constexpr Payload expects_bytes = RequestFlag::receives | RequestFlag::active;
    if ((f.payload & expects_bytes) == expects_bytes) {
      if (__builtin_expect(status == nullptr, 0)) {
        lose_message(f);
      } else {
        const bool has_arrived = !was_cancelled(f, *status);
        const Bytes bytes = has_arrived ? received_bytes(*status) : 0;
        credit(thread_, *maker_of(f.payload), 0, bytes);
        if (has_arrived && (f.payload & RequestFlag::message) != 0) arrived_from(f.payload, *status, bytes);
      }
    }
    constexpr Payload odd = RequestFlag::persistent | RequestFlag::awaited;
    if (__builtin_expect((f.payload & odd) == 0, 1)) return RequestTable::release(f);
    finish_odd(f, succeeded);
  }

  // The call failed: ends the requests that MPI has completed or freed.  Without statuses that show more, their bytes
  // are not counted.
  void finish_failed(int rc, const MPI_Status* statuses) noexcept {
    if (!in_status(rc)) statuses = nullptr;
    for (int i = 0; i < n_; ++i) {
      if (found_[i].payload == 0) continue;
      const bool succeeded = statuses != nullptr && statuses[i].MPI_ERROR == MPI_SUCCESS;
      if (!succeeded) lose_message(found_[i]);
      if (succeeded || handles_[i] == api.request_null) finish(i, succeeded ? &statuses[i] : nullptr, succeeded);
    }
  }

  // True if some requests failed and their statuses show which.
  static bool in_status(int rc) noexcept {
    int error = 0;
    return rc != MPI_SUCCESS && api.Error_class(rc, &error) == MPI_SUCCESS && error == MPI_ERR_IN_STATUS;
  }

  void finish_shared(int completed) noexcept {
    if (shared_ != 0) thread_.complete.remove(static_cast<std::uint64_t>(std::min(completed, shared_)));
  }

  // Call after the start: counts the data that persistent requests send.  Received data count at completion.
  void started() noexcept {
    for (int i = 0; i < n_; ++i) {
      RequestTable::Found& f = found_[i];
      if ((f.payload & RequestFlag::persistent) == 0) continue;
      const PersistentRequest* const p = persistent_of(f.payload);
      credit(thread_, *p->maker, p->sent, p->received);
      if (p->to >= 0) credit_departure(thread_, *p);
      credit_collective(thread_, *p);
      const bool is_sampled = p->operations != nullptr && count_and_check_due(*p->operations, 0);
      // A start that ended unseen, in a callback or with an error, may have left the flag.
      const Payload was = f.payload & ~RequestFlag::awaited;
      change(f, was | RequestFlag::active | (is_sampled ? begin_started(thread_, *p, was) : 0));
      consider(i);
    }
  }

  // Call after a start that failed: it is unknown which requests have started.
  void start_failed() noexcept {
    for (int i = 0; i < n_; ++i) {
      if ((found_[i].payload & RequestFlag::persistent) == 0) continue;
      const std::uint32_t comm = comm_at(i);
      stop_messages(comm);
      stop_operations(comm);
    }
  }

  // For the messages that the MPI library sends inside a start call.
  Starting starting() const noexcept { return {found_, n_}; }

  // The communicator of a call about one request, active or not.
  std::uint32_t owner() noexcept { return n_ == 1 && found_[0].payload != 0 ? comm_at(0) : comm(); }

  void mark_cancelled() noexcept {
    if (n_ != 1 || found_[0].payload == 0) return;
    // A send that is cancelled has a number already.
    if ((found_[0].payload & RequestFlag::receives) == 0) stop_messages(comm_at(0));
    change(found_[0], found_[0].payload | RequestFlag::cancelled);
  }

  // The application frees the request: no later call shows its end.
  void forget() noexcept {
    finish_shared(1);
    if (n_ != 1 || found_[0].payload == 0) return;
    if (counts(found_[0])) lose_message(found_[0]);
    if ((found_[0].payload & RequestFlag::awaited) != 0) drop_operation(found_[0].payload & ~RequestFlag::all);
    RequestTable::release(found_[0]);
    if ((found_[0].payload & RequestFlag::persistent) != 0) free_persistent(persistent_of(found_[0].payload));
  }

  const RequestTable::Found& operator[](int i) const noexcept { return found_[i]; }
  int size() const noexcept { return n_; }
  int shared() const noexcept { return shared_; }

 private:
  static void change(RequestTable::Found& f, Payload payload) noexcept {
    if (RequestTable::change(f, payload) != 0) f.payload = payload;
  }
  // Tests only requests that the application has tried to cancel: the status of a file request may have any value
  // there.
  static bool was_cancelled(const RequestTable::Found& f, const MPI_Status& status) noexcept {
    if ((f.payload & RequestFlag::cancelled) == 0) return false;
    int cancelled = 0;
    return api.Test_cancelled(&status, &cancelled) == MPI_SUCCESS && cancelled != 0;
  }
  // The status of a partitioned receive need not contain the sender.
  void arrived_from(Payload payload, const MPI_Status& status, Bytes bytes) noexcept {
    const int from = (payload & RequestFlag::persistent) != 0 ? persistent_of(payload)->from : -1;
    if (__builtin_expect(from < 0, 1)) return credit_arrival(thread_, payload, status, bytes);
    if (matrix_choice.peers) count_received_of(thread_, *maker_of(payload), from, bytes);
  }
  // Not inlined: completion calls would need registers for it.
  __attribute__((noinline, cold)) void finish_odd(const RequestTable::Found& f, bool succeeded) noexcept {
    if ((f.payload & RequestFlag::awaited) != 0) awaited_completed(thread_, f.payload, succeeded);
    if ((f.payload & RequestFlag::persistent) != 0) {
      RequestTable::change(f, f.payload & ~(RequestFlag::active | RequestFlag::cancelled | RequestFlag::awaited));
    } else {
      RequestTable::release(f);
    }
  }
  // Call when the message of a request will not be counted: its number is missing.
  __attribute__((noinline, cold)) static void lose_message(const RequestTable::Found& f) noexcept {
    if ((f.payload & RequestFlag::message) != 0) stop_messages(comm_of_key(maker_of(f.payload)->key));
  }
  static bool counts(const RequestTable::Found& f) noexcept { return (f.payload & RequestFlag::active) != 0; }
  std::uint32_t comm_at(int i) const noexcept { return comm_of_key(maker_of(found_[i].payload)->key); }

  void consider(int i) noexcept {
    if (!counts(found_[i])) return;
    const std::uint32_t c = comm_at(i);
    is_mixed_ = is_mixed_ || (only_ != 0 && c != only_);
    only_ = c;
  }

  __attribute__((noinline)) std::uint32_t comm_of_several() noexcept {
    if (is_mixed_) return comm_set();
    const CompleteRequests& complete = thread_.complete;
    if (complete.used <= 1) return complete.used == 1 ? complete.comm[0] : 0;
    if (complete.used > CompleteRequests::capacity) return 0;  // one of too many communicators
    std::uint32_t indices[CompleteRequests::capacity];
    std::copy(complete.comm, complete.comm + complete.used, indices);
    std::sort(indices, indices + complete.used);
    return registry->set_of(indices, static_cast<std::size_t>(complete.used)).index;
  }

  std::uint32_t comm_set() noexcept {
    auto* const indices = reinterpret_cast<std::uint32_t*>(statuses() + n_);
    std::size_t used = 0;
    for (int i = 0; i < n_; ++i) {
      // Skips indices equal to the one before, which are frequent, so that less has to be sorted.
      if (counts(found_[i]) && (used == 0 || indices[used - 1] != comm_at(i))) indices[used++] = comm_at(i);
    }
    std::sort(indices, indices + used);
    used = static_cast<std::size_t>(std::unique(indices, indices + used) - indices);
    // Ignores requests without a communicator (generalised requests).
    const std::size_t first = indices[0] == 0 ? 1 : 0;
    if (used - first <= 1) return indices[used - 1];
    return registry->set_of(indices + first, used - first).index;
  }

  Thread& thread_;
  const MPI_Request* handles_;
  RequestTable::Found* found_ = nullptr;
  RequestTable::Found one_{nullptr, 0};  // one request needs no scratch memory
  MPI_Status one_status_;
  std::size_t taken_ = 0;  // bytes of scratch memory
  int n_ = 0;
  int shared_ = 0;
  std::uint32_t only_ = 0;  // communicator of the active requests, if they share one
  bool is_mixed_ = false;   // they do not share one
  Payload all_flags_ = 0;
};

}  // namespace commlens
