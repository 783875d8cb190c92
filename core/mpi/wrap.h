// SPDX-License-Identifier: Apache-2.0
#pragma once

// The building blocks of the generated wrappers.  This code runs inside every MPI call of the application: it does not
// allocate, lock, make system calls or communicate (tools/check_hot.sh checks the object files).

#include <mpi.h>

#include <type_traits>

#include "core/hot/peers.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"
#include "core/job/pcontrol.h"
#include "core/mpi/bind.h"
#include "core/mpi/fortran.h"
#include "core/mpi/pml_hook.h"
#include "core/mpi/state.h"
#include "core/mpi/volume.h"
#include "core/state/paths.h"

#if defined(COMMLENS_PORTABLE)
#include "core/mpi/entry_portable.h"
#define COMMLENS_CALLER commlens_caller
#else
// entry.S enters the wrapper by a jump, so its return address is in the application.
#define COMMLENS_CALLER reinterpret_cast<Site>(__builtin_return_address(0))
#endif

namespace commlens {

inline const CommView& no_comm() noexcept { return registry->none(); }

// Cold path of comm_of(): the handle is unknown, or something was freed during the call.
const CommView& late_comm(MPI_Comm comm, int rc, std::uint64_t freed) noexcept;

// Returns the communicator of a handle that MPI has just accepted with return code `rc`.  freed: HandleMap::freed when
// the call began.  Called after MPI, because an unknown handle must not be used before MPI has accepted it.
inline const CommView& comm_of(MPI_Comm comm, int rc, std::uint64_t freed) noexcept {
  const void* const known = comms.find(bits(comm));
  if (__builtin_expect(known != nullptr && HandleMap::none_freed_since(freed), 1)) {
    return *static_cast<const CommView*>(known);
  }
  return late_comm(comm, rc, freed);
}

// Returns the communicator of a known handle, including one that this thread is freeing.
inline const CommView& known_comm(MPI_Comm comm) noexcept {
  const void* const known = comms.find(bits(comm));
  if (known != nullptr) return *static_cast<const CommView*>(known);
  const FreeingComm& freeing = this_thread().freeing;
  if (freeing.view != nullptr && freeing.handle == bits(comm)) return *freeing.view;
  return no_comm();
}

inline const CommView& comm_of_win(MPI_Win win) noexcept {
  const void* const known = windows.find(bits(win));
  return known != nullptr ? *static_cast<const CommView*>(known) : no_comm();
}

inline FileRecord* file_record(MPI_File file) noexcept { return static_cast<FileRecord*>(files.find(bits(file))); }

inline const CommView& comm_of_file(MPI_File file) noexcept {
  const FileRecord* const known = file_record(file);
  return known != nullptr ? *known->comm : no_comm();
}

// Message handles share the table of requests; bit 63 keeps the two apart.
inline std::uint64_t message_bits(MPI_Message message) noexcept { return bits(message) | (std::uint64_t{1} << 63); }

inline void made_message(MPI_Message message, const CommView& comm) noexcept {
  if (message == api.message_no_proc || message == api.message_null) return;
  requests.put(message_bits(message), make_payload(&comm, RequestFlag::active, 0));
}

inline const CommView& comm_of_message(MPI_Message message) noexcept {
  const RequestTable::Found found = requests.find(message_bits(message));
  if (found.payload == 0) return no_comm();
  RequestTable::release(found);
  return *reinterpret_cast<const CommView*>(found.payload & pointer_bits);
}

void made_window(MPI_Win win, const CommView& comm) noexcept;  // cold
void made_file(MPI_File file, const CommView& comm) noexcept;  // cold

// Returns the bytes received.  Reads them from the status itself, whose members are part of the binary interface of
// each family.  MPI_Get_elements_x would cost as much as the rest of a wrapper.
inline Bytes received_bytes(const MPI_Status& status) noexcept {
#if defined(OPEN_MPI)
  return status._ucount;
#elif defined(MPI_ABI_VERSION)
  // The standard does not define where a status stores the size.
  MPI_Count bytes = 0;
  return api.Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes > 0 ? static_cast<Bytes>(bytes) : 0;
#else
  // The lowest bit of the upper word means "cancelled".
  return (static_cast<Bytes>(static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1) << 32) |
         static_cast<std::uint32_t>(status.count_lo);
#endif
}

// The status to pass to MPI: the application's, or one of our own if the application passes MPI_STATUS_IGNORE.
class StatusFor {
 public:
  explicit StatusFor(MPI_Status* wanted) noexcept : status_(wanted == MPI_STATUS_IGNORE ? &own_ : wanted) {}
  MPI_Status* get() noexcept { return status_; }
  // pre: the call succeeded.  The status may be null: MPICH, whose MPI_STATUS_IGNORE is not null, also accepts a null
  // status.
  Bytes received() const noexcept { return is_null() ? 0 : received_bytes(*status_); }
  int source() const noexcept { return is_null() ? -1 : status_->MPI_SOURCE; }
  int tag() const noexcept { return is_null() ? 0 : status_->MPI_TAG; }

 private:
  bool is_null() const noexcept { return MPI_STATUS_IGNORE != nullptr && status_ == nullptr; }

  MPI_Status own_;
  MPI_Status* status_;
};

// Converts arguments to words, for the call cache.
template <class Argument>
inline auto word(Argument argument) noexcept {
  if constexpr (std::is_pointer_v<Argument>) {
    return reinterpret_cast<std::uint64_t>(argument);
  } else if constexpr (sizeof argument <= sizeof(std::uint32_t)) {
    return static_cast<std::uint32_t>(argument);
  } else {
    return static_cast<std::uint64_t>(argument);
  }
}
inline std::uint64_t pair(int a, int b) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
}

// Cold: there is no memory for a request that `maker` made.  Returns 0.
Payload forget_request(Thread& thread, const Cell& maker) noexcept;

// Records an active request that the call `maker` returned.  Returns its payload, or 0 if the request is null or
// shared, or there is no memory for it.
__attribute__((always_inline)) inline Payload remember(Thread& thread, MPI_Request request, Cell& maker,
                                                       Payload flags) noexcept {
  if (may_be_predefined(request)) {
    if (request == api.request_null) return 0;
    if (is_shared(request)) {
      thread.complete.add(comm_of_key(maker.key));
      return 0;
    }
  }
  const std::uint64_t sequence = ++thread.sequence;
  const Payload payload = make_payload(&maker, flags, sequence);
  if ((flags & RequestFlag::message) != 0) {
    thread.call_cache->posted[sequence % CallCache::most_posted] = thread.current.since;
  }
  if (requests.put(bits(request), payload)) return payload;
  return forget_request(thread, maker);
}

// The operations to which a collective that does not block belongs, and its SampleFlag.
struct OperationOf {
  Channel* channel = nullptr;  // null: not sampled
  std::uint32_t flags = 0;
};

// Cold.  Records the request of an operation that is to be sampled.
void remember_sampled(Thread& thread, MPI_Request request, Cell& maker, Payload flags, OperationOf of) noexcept;

// The same for any operation.  pre: of.channel is not null
inline void remember_operation(Thread& thread, MPI_Request request, Cell& maker, Payload flags,
                               OperationOf of) noexcept {
  if (count_and_check_due(*of.channel, 0)) return remember_sampled(thread, request, maker, flags, of);
  remember(thread, request, maker, flags);
}
void remember_persistent(Thread& thread, MPI_Request request, Cell& maker, const CommView& comm, const Volume& v,
                         Payload flags, OperationOf of) noexcept;  // cold

// Counts the block of a collective for each peer, if blocks are counted per peer (Blocks::are_kept).  Returns the bytes
// of all blocks.
inline Bytes share_out(Thread& thread, Op op, const CommView& comm, const Volume& v) noexcept {
  Bytes bytes_of_all = 0;
  const bool are_kept = v.parts.are_kept();
  v.each_block(comm, [&](int peer, Bytes bytes) {
    if (are_kept) count_message(thread, Flow::share, comm.index, op, peer, bytes);
    bytes_of_all += bytes;
  });
  return bytes_of_all;
}

// Returns the size bin of a collective before MPI is called, plus 1; 0: unknown.
template <class Measure>
__attribute__((noinline, cold)) std::uint32_t bin_ahead(Measure measure, const CommView& comm) noexcept {
  Volume volume;
  volume.is_ahead = true;
  measure(volume, comm);
  return volume.is_unknown ? 0 : volume.bin + 1;
}

// Cold.  Returns whether a process need not wait for another one in this call, because a block between them is empty.
bool has_empty_block(const CommView& comm, const Volume& v) noexcept;

inline std::uint32_t root_flag(const Volume& v) noexcept {
  return v.shape == Flow::one_to_all || v.shape == Flow::all_to_one ? SampleFlag::root : 0;
}

// Returns whether the call that begins is plain: the thread is known, it is not inside another MPI call, and
// are_calls_plain().
inline bool is_plain_call(const Thread* thread) noexcept {
  return thread != nullptr && thread->outermost == nullptr && are_calls_plain();
}

// Procedures that are called often have a second wrapper, for plain calls that are in the call cache.  It passes any
// other call to the first wrapper by a jump, which only an optimising compiler generates.  With a call instruction
// instead, the first wrapper would take the second one for the application.
#if defined(__OPTIMIZE__) && !defined(COMMLENS_PORTABLE)
inline constexpr bool has_plain_calls = true;
#else
inline constexpr bool has_plain_calls = false;
#endif
#define COMMLENS_APART __attribute__((noinline))  // neither is inlined into the other

// Chooses the wrapper of a procedure that has two more for plain calls: one for call sites, and one for call paths.
// The latter finds a path in the cache by its own frame address, so it must have the same one as the first wrapper.
template <class Function>
Function* chosen(Function* by_site, Function* by_path, Function* first) noexcept {
  if (!has_plain_calls) return first;
  if (!has_paths()) return by_site;
  return frame_tells_sp ? by_path : first;
}

// One MPI call of the application, from entry to return.  Determines whether it is the outermost MPI call of its
// thread, and counts it.
//
// An error handler may throw an exception, or end the thread, through MPI and through the wrapper.  The wrappers are
// compiled without exceptions, because the application's unwinder passes through them, not the copy inside our library.
// Instead, the line with .cfi_personality gives each wrapper a personality routine that only ends the call
// (lifecycle.cpp).  After a longjmp, a later call detects that the old one is gone (Thread::is_inside).
class Call {
 public:
  __attribute__((always_inline)) Call(Op op, Site caller) noexcept : thread_(this_thread()), op_(op), site_(caller) {
    // 0x1b: the address is PC-relative, signed, and has four bytes.
    asm volatile(".cfi_personality 0x1b, commlens_personality");
#if defined(COMMLENS_PORTABLE)
    char* const frame = record_.address();
#else
    char* const frame = static_cast<char*>(__builtin_frame_address(0));
#endif
    nested_ = thread_.is_inside(frame);
    if (nested_) return;
    if (must_locate_calls) {
      Site site = site_;  // a copy: taking the address of a member would force this object into memory
      nested_ = !locate(thread_, op, site, frame);
      site_ = site;
      if (nested_) return;
    }
    site_ &= site_mask;
    thread_.enter(frame);
  }
  ~Call() {
    if (!nested_) thread_.outermost = nullptr;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // True if the call is not the application's own: pass it on, do not count it.
  bool nested() const noexcept { return nested_; }
  Thread& thread() noexcept { return thread_; }
  Site site() const noexcept { return nested_ ? site_ : thread_.current.site; }  // pre: nested, or started

  void start() noexcept { begin(0, CurrentCall::nothing); }
  void start_in(MPI_Comm comm) noexcept { begin(bits(comm), CurrentCall::handle); }
  void start_under(std::uint32_t comm) noexcept { begin(comm, CurrentCall::index); }
  // Of a blocking call: whom it sends to and receives from.  Two stores each.
  void send_to(int rank, int tag) noexcept { thread_.current.to = {rank, tag}; }
  void receive_from(int rank, int tag) noexcept { thread_.current.from = {rank, tag}; }
  // The same for the tag of a call that does not wait.
  void send_tag(int tag) noexcept { thread_.current.to.tag = tag; }
  std::uint64_t freed() const noexcept { return freed_; }  // HandleMap::freed when it began
  // Computes the size bin of a collective for its internal messages.  Runs before MPI is called, so it may only use
  // arguments that are known to be valid.  The volume that is measured after the call has the same bin.
  template <class Measure>
  COMMLENS_IN_REGISTERS void compute_bin_ahead(MPI_Comm comm, Measure measure) noexcept {
#if defined(OPEN_MPI)
    if (__builtin_expect(!matrix_choice.inside, 1)) return;
    const void* const known = comms.find(bits(comm));
    if (known == nullptr) return;
    thread_.call = bin_ahead(measure, *static_cast<const CommView*>(known));
#else
    static_cast<void>(comm);
    static_cast<void>(measure);
#endif
  }
  void stop() noexcept { end_ = now(); }

  // Returns the cache entry of an equal call, or null.  If null, cache() caches this call after it was counted.
  //  pre:  the call succeeded; its volume and peers depend only on `object`, `words` and what it received.
  template <class... Words>
  COMMLENS_IN_REGISTERS CachedCall* find_cached(std::uint64_t object, Words... words) noexcept {
    const Site site = thread_.current.site;
    const std::uint64_t subject = CachedCall::subject_of(op_, object);
    const std::uint64_t freed = HandleMap::freed.load(std::memory_order_acquire);
    CachedCall* const r = thread_.call_cache->find(site, subject, freed, words...);
    if (r != nullptr && __builtin_expect(r->region == thread_.region() && !thread_.is_due(end_), 1)) return r;
    cached_ = slot_to_fill(thread_, thread_.call_cache->place(site, subject, words...), r, freed);
    if (cached_ != nullptr) {
      cached_->note(site, subject, words...);
      thread_.call_cache->follow(*cached_);
    }
    return nullptr;
  }
  // pre: find_cached() returned it.
  template <unsigned parts, class... Arrived>
  COMMLENS_IN_REGISTERS void count(CachedCall& r, Arrived... arrived) noexcept {
    count_as<parts>(thread_, r, end_, arrived...);
    if constexpr ((parts & CachedCall::sampled) != 0) {
      if (count_and_check_due(*r.stratum)) sample_counted(0, thread_, r, end_);
    }
  }
  template <unsigned parts>
  COMMLENS_IN_REGISTERS void cache(Cell& cell, const Volume& v) noexcept {
    if (cached_ == nullptr) return;
    CachedCall& r = *cached_;
    const std::uint32_t region = region_of_key(cell.key);
    // The overflow cell has no procedure.
    if (op_of_key(cell.key) != op_ || comm_of_key(cell.key) == 0) return;
    if (region == uncounted_region || matrix_choice.by_any) return;
    const bool has_more = ((parts & CachedCall::sends) == 0 && v.sent != 0) ||
                          ((parts & CachedCall::receives) == 0 && v.received != 0) ||
                          ((parts & CachedCall::out_message) == 0 && out_ != nullptr) ||
                          ((parts & CachedCall::in_message) == 0 && in_ != nullptr);
    if (has_more) return;
    r.region = region;
    r.cell = &cell;
    r.out = out_ != nullptr ? out_ : &thread_.nobody;
    if constexpr ((parts & CachedCall::sampled) != 0) {
      r.source = static_cast<std::int32_t>(root_flag(v));
      r.stratum = stratum_ != nullptr ? stratum_ : &thread_.call_cache->unsampled;
    } else if constexpr ((parts & CachedCall::operation) != 0) {
      r.source = static_cast<std::int32_t>(operation_.flags);
      r.operations = operation_.channel != nullptr ? operation_.channel : &thread_.call_cache->no_channel;
    } else {
      r.source = v.from;
      r.in = in_ != nullptr ? in_ : &thread_.nobody;
    }
    r.sent = v.sent;
    r.received = v.received;
    if constexpr ((parts & CachedCall::may_skip) != 0) r.time_all(parts, cell.calls);
    r.out_bytes = v.shape == Flow::count ? v.sent : v.exchanged;
    r.freed = freed_;  // if something was freed meanwhile, the entry is invalid already
  }
  // Counts a call without a volume, in the cells of an equal call if there is one.
  template <unsigned parts = CachedCall::nothing>
  COMMLENS_IN_REGISTERS void count_under(std::uint32_t comm) noexcept {
    if (comm != 0) {
      if (CachedCall* const again = find_cached(comm)) return count<parts>(*again);
    }
    cache<parts>(record(comm, Volume{}), Volume{});
  }
  // The same as start_under() and, after MPI, stop() and count_under(), for a call that cannot wait.
  void start_unwaiting(std::uint32_t comm) noexcept {
    if (comm != 0) {
      const std::uint64_t freed = HandleMap::freed.load(std::memory_order_acquire);
      CachedCall* const r = thread_.call_cache->find(site_, CachedCall::subject_of(op_, comm), freed);
      if (r != nullptr && r->region == thread_.region()) decided_ = r;
      if (decided_ != nullptr && goes_untimed<CachedCall::may_skip>(thread_, *r)) {
        is_untimed_ = true;
        thread_.call = 0;
        return begin_call(thread_.current, comm, thread_.current.since + 1, site_, op_, CurrentCall::index, true);
      }
    }
    start_under(comm);
  }
  void count_unwaiting(std::uint32_t comm) noexcept {
    constexpr unsigned parts = CachedCall::may_skip;
    if (is_untimed_) {
      if (__builtin_expect(is_as_decided<parts>(thread_, *decided_), 1)) {
        count_untimed<parts>(thread_, *decided_);
      } else {
        count_untimed_late(thread_, *decided_, parts, true);
      }
      return;
    }
    stop();
    if (decided_ == nullptr) return count_under<parts>(comm);
    if (__builtin_expect(decided_->region == thread_.region() && !thread_.is_due(end_), 1)) {
      count_timed<parts>(thread_, *decided_, end_);
    } else {
      count_late(thread_, *decided_, parts | CachedCall::stays, end_, true, 0, -1, 0);
    }
  }

  COMMLENS_IN_REGISTERS Cell& record(std::uint32_t comm, const Volume& v) noexcept {
    return *commlens::record(thread_, make_key(comm, op_, v.bin, thread_.region(), v.noncontiguous),
                             thread_.current.site, spent(), v.sent, v.received);
  }
  COMMLENS_IN_REGISTERS Cell& record(const CommView& comm, const Volume& v) noexcept { return record(comm.index, v); }
  // Count the messages of procedures that send to, and receive from, at most one process each.  tag: of the message
  // that was received.
  COMMLENS_IN_REGISTERS void two_sided(const CommView& comm, const Volume& v, int rc, int tag = 0) noexcept {
    if (!matrix_choice.peers) return;
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) return stop_messages(comm.index);
    const Key key = make_key(comm.index, op_, v.bin, thread_.region());
    if (v.to >= 0) {
      cache_if(out_ = count_sampled_message(thread_, Flow::sent, comm.index, v.to, v.sent, thread_.current.to.tag,
                                            {key, end_, 0}));
    }
    if (v.from >= 0) {
      cache_if(in_ = count_sampled_message(thread_, Flow::received, comm.index, v.from, v.received, tag,
                                           {key, end_, thread_.current.since}));
    }
  }
  COMMLENS_IN_REGISTERS void one_sided(const CommView& comm, const Volume& v) noexcept {
    if (!matrix_choice.peers) return;
    if (v.to >= 0) cache_if(out_ = count_message(thread_, Flow::put, comm.index, 0, v.to, v.sent));
    if (v.from >= 0) cache_if(in_ = count_message(thread_, Flow::get, comm.index, 0, v.from, v.received));
  }

  // Counts a collective by its shape, and its blocks per peer if it has a block for each.
  COMMLENS_IN_REGISTERS void collective(const CommView& comm, const Volume& v) noexcept {
    if (!matrix_choice.peers || v.shape == Flow::count) return;
    Bytes exchanged = v.exchanged;
    if (v.parts.slots != 0) {
      const Volume copy = v;
      exchanged += share_out(thread_, op_, comm, copy);
    }
    cache_if(out_ = count_shape(thread_, v.shape, comm.index, op_, exchanged));
  }

  // Counts a blocking collective among those of its stratum, and samples it if it is its turn.  Call it after the call
  // was counted.  The size bin of a call that failed is unknown, so the stratum is, too: this process stops sampling
  // the communicator, and the profile leaves out what the other members sample.
  COMMLENS_IN_REGISTERS void count_in_stratum(const CommView& comm, const Volume& v, int rc) noexcept {
    if (!comm.is_sampled) return;
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) return stop_sampling(comm);
    const Key key = stratum_key(comm.index, op_, v.bin);
    stratum_ = static_cast<Stratum*>(strata.find(key));
    if (__builtin_expect(stratum_ == nullptr, 0)) {
      stratum_ = add_stratum(key, comm.identity, thread_.call_cache->unsampled);
    }
    // Two threads may fence two windows of one communicator in any order.
    if (op_ == op::MPI_Win_fence && !claim_for_this_thread(*stratum_)) return stop_stratum(*stratum_);
    if (count_and_check_due(*stratum_)) {
      const Volume copy = v;
      const std::uint32_t empty = has_empty_block(comm, copy) ? SampleFlag::empty : 0;
      sample_counted(thread_, *stratum_, end_, root_flag(copy) | empty, true);
    }
  }

  // Determines the operations to which a collective that does not block belongs.  Call it before record_request().
  COMMLENS_IN_REGISTERS void find_operations(const CommView& comm, const Volume& v, int rc,
                                             bool is_persistent) noexcept {
    if (!comm.is_sampled) return;
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) return stop_operations(comm.index);
    operation_.channel = operations_of(comm, op_, v.bin, is_persistent);
    const Volume copy = v;
    operation_.flags = root_flag(copy) | (has_empty_block(comm, copy) ? SampleFlag::empty : 0);
  }

  COMMLENS_IN_REGISTERS Cell& record_request(const CommView& comm, const Volume& v, int rc, const MPI_Request* request,
                                             Payload flags) noexcept {
    if ((flags & RequestFlag::persistent) != 0) {
      Volume made = v;
      made.sent = made.received = 0;
      Cell& cell = record(comm, made);
      const Volume copy = v;
      if (rc == MPI_SUCCESS) remember_persistent(thread_, *request, cell, comm, copy, flags, operation_);
      return cell;
    }
    Cell& cell = record(comm, v);
    if (rc != MPI_SUCCESS) return cell;
    if (operation_.channel != nullptr) {
      commlens::remember_operation(thread_, *request, cell, flags, operation_);
    } else {
      remember(*request, cell, flags);
    }
    return cell;
  }

  COMMLENS_IN_REGISTERS Payload remember(MPI_Request request, Cell& maker, Payload flags) noexcept {
    return commlens::remember(thread_, request, maker, flags);
  }
  // pre: find_cached() returned r.
  COMMLENS_IN_REGISTERS void remember_operation(MPI_Request request, const CachedCall& r, Payload flags) noexcept {
    commlens::remember_operation(thread_, request, *r.cell, flags,
                                 {r.operations, static_cast<std::uint32_t>(r.source)});
  }

 private:
  // Claims a stratum that no thread has used yet.  Returns whether it is this thread's.
  bool claim_for_this_thread(Stratum& stratum) const noexcept {
    const std::uint32_t thread = thread_.number + 1;
    if (stratum.thread == 0) stratum.thread = thread;
    return stratum.thread == thread;
  }
  // Does not cache the call if its message was not counted: another thread has paused counting since the call was
  // counted.  The messages of later equal calls may be counted.
  COMMLENS_IN_REGISTERS void cache_if(const PeerCell* counted) noexcept {
    if (__builtin_expect(counted == nullptr, 0)) cached_ = nullptr;
  }
  COMMLENS_IN_REGISTERS void begin(std::uint64_t comm, CurrentCall::CommBy comm_by) noexcept {
    freed_ = HandleMap::freed.load(std::memory_order_relaxed);
    thread_.call = 0;
    const Ticks start = now();
    begin_call(thread_.current, comm, start, site_, op_, comm_by);
  }
  // A thread may move to a core whose counter is slightly behind; the duration is then 0.
  Ticks spent() const noexcept { return end_ > thread_.current.since ? end_ - thread_.current.since : 0; }

#if defined(COMMLENS_PORTABLE)
  FrameRecord record_{COMMLENS_CALLER};
#endif
  Thread& thread_;
  const Op op_;
  bool nested_;
  Site site_;  // until the call begins; then Thread::current has it, and no register is needed
  std::uint64_t freed_ = 0;
  Ticks end_ = 0;
  CachedCall* cached_ = nullptr;   // the cache entry for this call; null: not cached
  CachedCall* decided_ = nullptr;  // the cache entry for this call, which goes untimed or stands for its block
  bool is_untimed_ = false;
  Stratum* stratum_ = nullptr;  // null: not sampled
  OperationOf operation_;
  PeerCell *out_ = nullptr, *in_ = nullptr;
};

}  // namespace commlens
