// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wrappers that cannot be generated from the kinds of their arguments: completion and start of requests, freeing, split
// collective reads.  The generated wrapper calls each with the next definition and all arguments.

#include <algorithm>

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

// The same for the message of a request, to or from one process.
inline void credit_departure(Thread& t, const Cell& maker, int to, Bytes bytes) noexcept {
  if (matrix.peers && to >= 0) count_message_of(t, maker.key, Flow::sent, 0, to, bytes);
}
inline void credit_arrival(Thread& t, const Cell& maker, int from, Bytes bytes) noexcept {
  if (matrix.peers && from >= 0) count_received_of(t, maker, from, bytes);
}

// The same for a collective, by its shape.
inline void credit_collective(Thread& t, const PersistentRequest& p) noexcept {
  if (!matrix.peers || p.shape == Flow::count) return;
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
    n_ = n;
    for (int i = 0; i < n; ++i) {
      found_[i] = handles[i] == api.request_null ? RequestTable::Found{nullptr, 0} : requests.find(bits(handles[i]));
      all_flags_ |= found_[i].payload;
      if (__builtin_expect(found_[i].payload == 0, 0)) {
        if (handles[i] != api.request_null && is_shared(handles[i])) ++shared_;
      } else {
        consider(i);
      }
    }
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
  void finish_known(int i, const MPI_Status* status, bool succeeded = true) noexcept {
    const RequestTable::Found f = found_[i];
    if (f.payload == 0) return;
    constexpr Payload expects_bytes = RequestFlag::receives | RequestFlag::active;
    if ((f.payload & expects_bytes) == expects_bytes && status != nullptr) {
      const bool arrived = !was_cancelled(f, *status);
      const Bytes bytes = arrived ? received_bytes(*status) : 0;
      credit(thread_, *maker_of(f.payload), 0, bytes);
      if (arrived && (f.payload & RequestFlag::message) != 0)
        credit_arrival(thread_, *maker_of(f.payload), sender(f.payload, *status), bytes);
    }
    constexpr Payload odd = RequestFlag::persistent | RequestFlag::idup;
    if (__builtin_expect((f.payload & odd) == 0, 1)) return RequestTable::release(f);
    if ((f.payload & RequestFlag::idup) != 0) creation_completed(f.payload, succeeded);
    if ((f.payload & RequestFlag::persistent) != 0) {
      RequestTable::change(f, f.payload & ~(RequestFlag::active | RequestFlag::cancelled));
    } else {
      RequestTable::release(f);
    }
  }

  // The call failed: ends the requests that MPI has completed or freed.  Without statuses that show more, their bytes
  // are not counted.
  void finish_failed(int rc, const MPI_Status* statuses) noexcept {
    if (!in_status(rc)) statuses = nullptr;
    for (int i = 0; i < n_; ++i) {
      if (found_[i].payload == 0) continue;
      const bool succeeded = statuses != nullptr && statuses[i].MPI_ERROR == MPI_SUCCESS;
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

  // The requests were started: counts what the persistent ones send.  What they receive is counted at completion.
  void started() noexcept {
    for (int i = 0; i < n_; ++i) {
      RequestTable::Found& f = found_[i];
      if ((f.payload & RequestFlag::persistent) == 0) continue;
      const PersistentRequest* const p = persistent_of(f.payload);
      credit(thread_, *p->maker, p->sent, p->received);
      credit_departure(thread_, *p->maker, p->to, p->sent);
      credit_collective(thread_, *p);
      change(f, f.payload | RequestFlag::active);
      consider(i);
    }
  }

  // For the messages that the MPI library sends inside a start call.
  Starting starting() const noexcept { return {found_, n_}; }

  // The communicator of a call about one request, active or not.
  std::uint32_t owner() noexcept { return n_ == 1 && found_[0].payload != 0 ? comm_at(0) : comm(); }

  void mark_cancelled() noexcept {
    if (n_ == 1 && found_[0].payload != 0) change(found_[0], found_[0].payload | RequestFlag::cancelled);
  }

  // The application frees the request: no later call shows its end.
  void forget() noexcept {
    finish_shared(1);
    if (n_ != 1 || found_[0].payload == 0) return;
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
  static std::size_t scratch_size(int n) noexcept {
    return static_cast<std::size_t>(n) * (sizeof(RequestTable::Found) + sizeof(MPI_Status) + sizeof(std::uint32_t));
  }
  // Tests only requests that the application has tried to cancel: the status of a file request may have any value
  // there.
  static bool was_cancelled(const RequestTable::Found& f, const MPI_Status& status) noexcept {
    if ((f.payload & RequestFlag::cancelled) == 0) return false;
    int cancelled = 0;
    return api.Test_cancelled(&status, &cancelled) == MPI_SUCCESS && cancelled != 0;
  }
  // The status of a partitioned receive need not contain the sender.
  static int sender(Payload payload, const MPI_Status& status) noexcept {
    const int from = (payload & RequestFlag::persistent) != 0 ? persistent_of(payload)->from : -1;
    return from >= 0 ? from : status.MPI_SOURCE;
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
  int n_ = 0;
  int shared_ = 0;
  std::uint32_t only_ = 0;  // communicator of the active requests, if they share one
  bool is_mixed_ = false;   // they do not share one
  Payload all_flags_ = 0;
};

namespace hand {

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
    if ((payload & RequestFlag::idup) != 0) creation_completed(payload, rc == MPI_SUCCESS);
    RequestTable::release(found[i]);
  }
  return rc;
}

template <class Next>
int wait(Next next, Op op, Site caller, MPI_Request* request, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([&] { return next(request, status); }, 1, request);
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
int test(Next next, Op op, Site caller, MPI_Request* request, int* flag, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([&] { return next(request, flag, status); }, 1, request);
  Batch batch(call.thread(), 1, request);
  MPI_Status own;
  MPI_Status* const used = status == MPI_STATUS_IGNORE && batch.receives() ? &own : status;
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = next(request, flag, used);
  call.stop();
  call.count_under(comm);
  if (rc != MPI_SUCCESS) {
    batch.finish_failed(rc, nullptr);
  } else if (*flag != 0) {
    batch.finish(0, status_at(used, 0));
    batch.finish_shared(1);
  }
  return rc;
}

// MPI_Waitall and MPI_Testall, which only differ in the flag.
template <class CallNext, class Done>
__attribute__((always_inline)) inline int complete_all(CallNext call_next, Done done, Op op, Site caller, int count,
                                                       MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  Call call(op, caller);
  if (call.nested()) {
    return complete_in_callback([&] { return call_next(array_of_statuses); }, count, array_of_requests);
  }
  Batch batch(call.thread(), count, array_of_requests);
  MPI_Status* const used =
      array_of_statuses == MPI_STATUSES_IGNORE && batch.receives() ? batch.statuses() : array_of_statuses;
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = call_next(used);
  call.stop();
  call.count_under(comm);
  if (rc == MPI_SUCCESS && done()) {
    for (int i = 0; i < batch.size(); ++i) batch.finish_known(i, status_at(used, i));
    batch.finish_shared(batch.shared());
  } else if (rc != MPI_SUCCESS) {
    batch.finish_failed(rc, status_at(used, 0));
  }
  return rc;
}

template <class Next>
int waitall(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  return complete_all([&](MPI_Status* statuses) { return next(count, array_of_requests, statuses); },
                      [] { return true; }, op, caller, count, array_of_requests, array_of_statuses);
}

template <class Next>
int testall(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, int* flag,
            MPI_Status* array_of_statuses) {
  return complete_all([&](MPI_Status* statuses) { return next(count, array_of_requests, flag, statuses); },
                      [&] { return *flag != 0; }, op, caller, count, array_of_requests, array_of_statuses);
}

// MPI_Waitany and MPI_Testany.
template <class CallNext, class Done>
int complete_any(CallNext call_next, Done done, Op op, Site caller, int count, MPI_Request* array_of_requests,
                 int* index, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return complete_in_callback([&] { return call_next(status); }, count, array_of_requests);
  Batch batch(call.thread(), count, array_of_requests);
  MPI_Status own;
  MPI_Status* const used = status == MPI_STATUS_IGNORE && batch.receives() ? &own : status;
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = call_next(used);
  call.stop();
  call.count_under(comm);
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
  return complete_any([&](MPI_Status* s) { return next(count, array_of_requests, index, s); }, [] { return true; }, op,
                      caller, count, array_of_requests, index, status);
}

template <class Next>
int testany(Next next, Op op, Site caller, int count, MPI_Request* array_of_requests, int* index, int* flag,
            MPI_Status* status) {
  return complete_any([&](MPI_Status* s) { return next(count, array_of_requests, index, flag, s); },
                      [&] { return *flag != 0; }, op, caller, count, array_of_requests, index, status);
}

// MPI_Waitsome and MPI_Testsome.
template <class Next>
int waitsome(Next next, Op op, Site caller, int incount, MPI_Request* array_of_requests, int* outcount,
             int* array_of_indices, MPI_Status* array_of_statuses) {
  Call call(op, caller);
  if (call.nested()) {
    return complete_in_callback(
        [&] { return next(incount, array_of_requests, outcount, array_of_indices, array_of_statuses); }, incount,
        array_of_requests);
  }
  Batch batch(call.thread(), incount, array_of_requests);
  MPI_Status* const used =
      array_of_statuses == MPI_STATUSES_IGNORE && batch.receives() ? batch.statuses() : array_of_statuses;
  const std::uint32_t comm = batch.comm();
  call.start_under(comm);
  const int rc = next(incount, array_of_requests, outcount, array_of_indices, used);
  call.stop();
  call.count_under(comm);
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
int testsome(Next next, Op op, Site caller, int incount, MPI_Request* array_of_requests, int* outcount,
             int* array_of_indices, MPI_Status* array_of_statuses) {
  return waitsome(next, op, caller, incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

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
  if (rc == MPI_SUCCESS) batch.started();
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
  if (rc == MPI_SUCCESS) batch.started();
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
  if (rc == MPI_SUCCESS && *flag != 0 && (batch[0].payload & RequestFlag::idup) != 0) {
    creation_completed(batch[0].payload, true);
  }
  return rc;
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
  return rc;
}

template <class Next, class VolumeOf, class... Arguments>
int read_begin(Next next, Op op, Site caller, VolumeOf measure, MPI_File fh, Arguments... arguments) {
  Call call(op, caller);
  if (call.nested()) return next(fh, arguments...);
  FileRecord* const file = file_record(fh);
  const CommView& comm = file == nullptr ? no_comm() : *file->comm;
  call.start_under(comm.index);
  const int rc = next(fh, arguments...);
  call.stop();
  Volume volume(call.freed());
  if (rc == MPI_SUCCESS) measure(volume, comm);
  Cell& cell = call.record(comm, volume);
  if (rc == MPI_SUCCESS && file != nullptr) file->reading = &cell;
  return rc;
}

template <class Next>
int read_end(Next next, Op op, Site caller, MPI_File fh, void* buf, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return next(fh, buf, status);
  StatusFor status_for(status);
  FileRecord* const file = file_record(fh);
  const CommView& comm = file == nullptr ? no_comm() : *file->comm;
  call.start_under(comm.index);
  const int rc = next(fh, buf, status_for.get());
  call.stop();
  call.count_under(comm.index);
  if (file != nullptr && file->reading != nullptr) {
    if (rc == MPI_SUCCESS) credit(call.thread(), *file->reading, 0, status_for.received());
    file->reading = nullptr;
  }
  return rc;
}

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
  if (call.nested()) return call_next();
  MPI_Comm before = newcomm == nullptr ? api.comm_null : *newcomm;
  call.start_in(comm);
  const int rc = call_next();
  call.stop();
  const CommView& parent = comm_of(comm, rc, call.freed());
  Cell& cell = call.record(parent, Volume{});
  if (rc != MPI_SUCCESS || newcomm == nullptr || request == nullptr) return rc;
  const Payload payload = call.remember(*request, cell, RequestFlag::active | RequestFlag::idup);
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

// For the calls that begin and end the measurement; in lifecycle.cpp.
void initialised(Ticks before, Ticks after) noexcept;
void finalising() noexcept;
void finish() noexcept;
void aborting(MPI_Comm comm, int errorcode) noexcept;
void session_began(std::uint64_t session, Ticks before, Ticks after) noexcept;
void session_ending() noexcept;

template <class Next, class... Arguments>
int init(Next next, Op op, Site caller, Arguments... arguments) {
  Call call(op, caller);
  if (call.nested()) return next(arguments...);
  call.start();
  const Ticks before = now();
  const int rc = next(arguments...);
  if (rc == MPI_SUCCESS) initialised(before, now());
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
  return rc;
}

template <class Next, class Session>
int session_finalize(Next next, Op op, Site caller, Session* session) {
  Call call(op, caller);
  if (!call.nested()) session_ending();
  return next(session);
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

}  // namespace hand
}  // namespace commlens
