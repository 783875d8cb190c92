// SPDX-License-Identifier: Apache-2.0
// Open MPI calls its point-to-point layer (the "pml") through an exported table of functions, mca_pml.  All messages
// pass through it: those of the application's own calls, and those inside collectives, windows, files and the creation
// of communicators.  We replace some of its functions by our own, which count and call the former ones.
//
// No header of the library is used.  The functions are found by their names.  If one is not at the index at which the
// known releases have it, the table is not changed.  Only those arguments are read that the MPI call of the same name
// also has.
#include "core/mpi/pml_hook.h"

#include <mpi.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>

#include "core/base/memory.h"
#include "core/base/say.h"
#include "core/job/job.h"
#include "core/mpi/bind.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/wrap.h"
#include "core/process/symbols.h"
#include "core/state/peers.h"

namespace commlens {

__thread StartedRequests started_now;
__thread Ticks hidden_since;  // CurrentCall::since of a call whose messages are ours; 0: none

namespace {

std::atomic<bool> is_watching{false};
const char* why_not = nullptr;  // reason why there is no hook; null: it is installed, or not yet tried

#if defined(OPEN_MPI)

// ---- what causes a message ----

// How the messages that a thread sends during a call are attributed.
enum class Kind : std::uint8_t {
  other,       // to the call
  collective,  // to the call, as messages of a collective
  two_sided,   // with a tag of the application, its own message; else to an earlier call
  start,       // as two_sided, or to the persistent collectives that it starts
  none,        // a completion call, or no call: to earlier calls
};
Kind kinds[std::size(op_facts)];
bool is_blocking[std::size(op_facts)];  // a collective that sends all its messages before it returns

void learn_kinds() noexcept {
  const auto is = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
  for (std::size_t i = 0; i < std::size(op_facts); ++i) {
    const char* const klass = op_facts[i].klass;
    kinds[i] = is(klass, "collective") || is(klass, "neighbor") ? Kind::collective
               : is(klass, "p2p")                               ? Kind::two_sided
               : is(klass, "completion")                        ? Kind::none
                                                                : Kind::other;
    const char* const name = op_facts[i].name;
    is_blocking[i] = kinds[i] == Kind::collective && std::strncmp(name, "MPI_I", 5) != 0 && !std::strstr(name, "_init");
  }
  kinds[op::unknown] = Kind::none;
  kinds[op::MPI_Start] = kinds[op::MPI_Startall] = Kind::start;
}

std::uint32_t op_now(const Thread& thread) noexcept { return thread.outermost == nullptr ? 0 : thread.current.op; }

// A non-blocking or persistent collective gets a tag of its own from this range, each time the next lower one.  It
// continues to send with it during whatever call comes later.  All other internal messages use fixed tags outside the
// range.
constexpr int first_own_tag = -27, last_own_tag = -(1 << 30) + 1;
bool is_own_tag(int tag) noexcept { return tag <= first_own_tag && tag >= last_own_tag; }

// Which call took a tag.  One word per entry; later calls replace earlier ones:
//
//   63..52              51..36    35..11        10..1      0
//   of tag and handle   sequence  communicator  procedure  1
//
// sequence: of the call's request (hot/requests.h); 0 if it has none or sends with more than one tag.
using Taken = std::uint64_t;
constexpr std::uint64_t taken_count = 4096;
std::atomic<Taken> taken[taken_count];
std::atomic<std::uint8_t> sizes[taken_count];  // size bins of these calls, as in PeerPlace

std::uint32_t comm_of(Taken t) noexcept { return static_cast<std::uint32_t>(t >> 11) & max_comm; }
std::uint32_t op_of(Taken t) noexcept { return static_cast<std::uint32_t>(t >> 1) & 0x3ff; }
// Communicator, procedure and sequence.
Taken call_of(Taken t) noexcept { return t << 12 >> 12; }

std::uint16_t sequence_of(Payload payload) noexcept { return static_cast<std::uint16_t>(payload >> 48); }

struct Caller {
  std::uint32_t op;
  std::uint16_t sequence;
  std::uint32_t size = 0;  // size bin as in PeerPlace
};

std::uint32_t size_of_bin(std::uint32_t bin) noexcept { return bin == v_bin ? 0 : bin + 1; }

Taken make_taken(std::uint32_t comm, Caller caller) noexcept {
  return Taken{caller.sequence} << 36 | Taken{comm} << 11 | Taken{caller.op} << 1 | 1;
}

// Returns the procedure that created the request to which this message belongs: the next request of the start call that
// fits.  Requests are started one after the other.
Caller started_by(std::uint64_t comm, int tag, std::uint32_t index, Caller known) noexcept {
  StartedRequests& s = started_now;
  if (s.n == 0 || (s.comm == comm && s.tag == tag)) return known;
  for (int i = s.next; i < s.n; ++i) {
    const Payload payload = s.found[i].payload;
    if ((payload & RequestFlag::persistent) == 0) continue;
    const Key key = maker_of(payload)->key;
    const std::uint32_t op = op_of_key(key);
    if (kinds[op] != Kind::collective || comm_of_key(key) != index || (known.op != 0 && op != known.op)) continue;
    s.next = i + 1;
    s.comm = comm;
    s.tag = tag;
    return {op, sequence_of(payload), size_of_bin(bin_of_key(timed_key(key)))};
  }
  return known;
}

// Cold.  Attributes a message if the call that took its tag has sent nothing with it, because its first step was not a
// message.  Returns the oldest active request on this communicator whose tag is unknown.
Caller pending(std::uint32_t index) noexcept {
  Caller oldest{0, 0};
  requests.any([index, &oldest](const Cell& maker, Payload payload) {
    const std::uint32_t op = op_of_key(maker.key);
    if ((payload & RequestFlag::active) == 0 || comm_of_key(maker.key) != index || op >= std::size(kinds)) return false;
    if (kinds[op] != Kind::collective && kinds[op] != Kind::other) return false;
    const Caller caller{op, sequence_of(payload), size_of_bin(bin_of_key(timed_key(maker.key)))};
    const Taken call = make_taken(index, caller);
    for (const std::atomic<Taken>& t : taken) {
      if (call_of(t.load(std::memory_order_relaxed)) == call) return false;
    }
    const bool is_older = static_cast<std::int16_t>(caller.sequence - oldest.sequence) < 0;
    if (oldest.op == 0 || is_older) oldest = caller;
    return false;
  });
  if (kinds[oldest.op] == Kind::other) oldest.sequence = 0;
  return oldest;
}

struct Cause {
  std::uint32_t comm, op;
  std::uint32_t size;  // as in Caller
};

// pre: is_own_tag(tag); `op` is the call in progress; `index` is the communicator, if known.
Cause cause_of(const Thread& thread, MPI_Comm comm, int tag, std::uint32_t index, std::uint32_t op) noexcept {
  const std::uint64_t home = HandleMap::hash(bits(comm));
  const auto number = static_cast<std::uint64_t>(-static_cast<std::int64_t>(tag));
  const std::uint64_t at = (home + number) % taken_count;
  std::atomic<Taken>& place = taken[at];
  const std::uint64_t check = (home >> 32 ^ number / taken_count) << 52;
  const Taken then = place.load(std::memory_order_relaxed);
  const Kind kind = kinds[op];
  const bool begins = kind == Kind::collective || kind == Kind::other || kind == Kind::start;
  // The library may create a communicator with the handle of one that was freed.  A communicator without an index
  // counts as a new one in a call that may have begun with it.  In other calls it counts as one that was freed while an
  // operation on it was in progress.
  // Some algorithms of blocking collectives send with a tag of the range, the same one in each call.  It tells nothing
  // about a later call.
  const bool is_over = is_blocking[op_of(then)] && (kind == Kind::collective || kind == Kind::other);
  const bool is_same =
      then != 0 && !is_over && (then ^ check) >> 52 == 0 && (comm_of(then) == index || (index == 0 && !begins));
  const std::uint32_t size = is_same ? sizes[at].load(std::memory_order_relaxed) : 0;
  Caller caller{op, 0, thread.call};
  if (kind == Kind::start) {
    caller = started_by(bits(comm), tag, index, {is_same ? op_of(then) : 0, 0, size});
    if (is_same && caller.sequence == 0) return {index, caller.op, caller.size};
  } else if (is_same) {
    return {comm_of(then), op_of(then), size};
  } else if (!begins) {
    caller = index == 0 ? Caller{0, 0} : pending(index);
  } else if (kind == Kind::collective) {
    caller.sequence = static_cast<std::uint16_t>(thread.sequence + 1);  // the number that its request will get
  }
  if (caller.op != 0) {
    sizes[at].store(static_cast<std::uint8_t>(caller.size), std::memory_order_relaxed);
    place.store(check | make_taken(index, caller), std::memory_order_relaxed);
  }
  return {index, caller.op, caller.size};
}

const CommView* view_of(const Thread& thread, MPI_Comm comm) noexcept {
  const void* const known = comms.find(bits(comm));
  if (known != nullptr) return static_cast<const CommView*>(known);
  return thread.freeing.handle == bits(comm) ? thread.freeing.view : nullptr;
}

// ---- communicators that the library made for itself ----

int (*group_of)(MPI_Comm, MPI_Group*) = nullptr;  // without the checks of MPI_Comm_group, which may end the job

// Returns whether a call may send messages on an intercommunicator that is not known yet.
bool makes_intercomm(const Thread& thread, std::uint32_t op) noexcept {
  switch (op) {
    case op::MPI_Comm_accept:
    case op::MPI_Comm_connect:
    case op::MPI_Comm_join:
    case op::MPI_Comm_spawn:
    case op::MPI_Comm_spawn_multiple:
    case op::MPI_Intercomm_create:
    case op::MPI_Intercomm_create_from_groups:
    case op::MPI_Intercomm_merge: return true;
    default: break;
  }
  // A collective on an intercommunicator also uses communicators within each group, but creates none between them.
  if (thread.current.comm_by != CurrentCall::handle || kinds[op] == Kind::collective) return false;
  const void* const parent = comms.find(thread.current.comm);
  return parent != nullptr && static_cast<const CommView*>(parent)->inter;
}

// Returns the rank in MPI_COMM_WORLD of a peer in such a communicator; -1: unknown.
int world_rank_of(const Thread& thread, MPI_Comm comm, int peer, std::uint32_t op) noexcept {
  constexpr int most = 4096;  // ranks; a translation searches all of them
  if (group_of == nullptr || job.size > most || makes_intercomm(thread, op)) return -1;
  MPI_Group group;
  if (group_of(comm, &group) != MPI_SUCCESS) return -1;
  int world = -1;
  if (api.Group_translate_ranks(group, 1, &peer, job_groups.world, &world) != MPI_SUCCESS) world = -1;
  api.Group_free(&group);
  return world < 0 ? -1 : world;
}

// ---- counting ----

struct Message {
  bool counts;  // false: counted already, by the wrapper of its call
  Flow flow;
  std::uint32_t comm, op;
  int peer;
  std::uint32_t size;  // size bin, as in PeerPlace, of the collective it belongs to
};

// `posted`: what the message is if it belongs to a collective.
Message message_to(Thread& thread, int peer, int tag, MPI_Comm comm, Flow posted) noexcept {
  const std::uint32_t op = op_now(thread);
  const Kind kind = kinds[op];
  const CommView* const view = view_of(thread, comm);
  Message m{true, Flow::internal, view == nullptr ? 0 : view->index, 0, peer, 0};
  if (is_own_tag(tag)) {
    const Cause cause = cause_of(thread, comm, tag, m.comm, op);
    m.comm = cause.comm;
    m.op = cause.op;
    m.size = cause.size;
  } else if (tag >= 0 && view != nullptr && (kind == Kind::two_sided || kind == Kind::start)) {
    m.counts = false;
  } else if (kind == Kind::other || (kind == Kind::collective && tag < 0)) {
    m.op = op;
    m.size = thread.call;
  }
  // A non-blocking collective of the application has another procedure than the call in progress.
  if (m.op == op && hidden_since == thread.current.since && thread.outermost != nullptr) m.counts = false;
  if (kinds[m.op] == Kind::collective) m.flow = posted;
  if (m.counts && m.comm == 0) m.peer = world_rank_of(thread, comm, peer, op);
  return m;
}

// Returns the bytes of a message.  The layout of the library's internal datatypes is not stored, because it may reuse a
// handle with another size.
Bytes bytes_of(std::size_t count, MPI_Datatype datatype) noexcept {
  if (count == 0) return 0;
  if (const void* const known = known_layout(datatype); known != nullptr)
    return count * Layout(const_cast<void*>(known)).size();
  MPI_Count size = 0;
  return api.Type_size_x(datatype, &size) == MPI_SUCCESS && size > 0 ? count * static_cast<Bytes>(size) : 0;
}

std::atomic<bool> is_used{false};  // the table

void sends(std::size_t count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, Flow posted) noexcept {
  if (!is_used.load(std::memory_order_relaxed)) is_used.store(true, std::memory_order_relaxed);
  if (!is_watching.load(std::memory_order_relaxed)) return;  // another tool still calls this function
  Thread& thread = this_thread();
  const Message m = message_to(thread, peer, tag, comm, posted);
  if (m.counts) count_message(thread, m.flow, m.comm, m.op, m.peer, bytes_of(count, datatype), m.size);
}

// What an internal persistent request of the library sends each time it is started.  We are not notified when it is
// freed; another request that gets its handle replaces it.
struct alignas(64) Prepared {
  Message message;
  Bytes bytes;
};
RequestTable prepared;

Prepared* new_prepared() noexcept {
  static std::mutex mutex;
  static Prepared *next = nullptr, *end = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (next == end) {
    constexpr std::size_t some = 64;
    next = static_cast<Prepared*>(map_memory(some * sizeof(Prepared)));
    end = next == nullptr ? nullptr : next + some;
  }
  return next == nullptr ? nullptr : next++;
}

Prepared* prepared_of(MPI_Request request) noexcept {
  return reinterpret_cast<Prepared*>(prepared.find(bits(request)).payload & pointer_bits);
}

void prepares(MPI_Request request, const Message& message, Bytes bytes) noexcept {
  Prepared* p = prepared_of(request);
  if (p == nullptr && !message.counts) return;
  if (p == nullptr) {
    p = new_prepared();
    if (p == nullptr || !prepared.put(bits(request), make_payload(p, RequestFlag::active, 0))) return;
  }
  *p = {message, bytes};
}

// ---- the table ----

// The former functions of the table.  Their send modes are ints.
struct Entries {
  int (*irecv_init)(void*, std::size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*irecv)(void*, std::size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*isend_init)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request*);
  int (*isend)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request*);
  int (*send)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm);
  int (*start)(std::size_t, MPI_Request*);
};
Entries former;

int irecv_init(void* buffer, std::size_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Request* request) {
  const int rc = former.irecv_init(buffer, count, datatype, source, tag, comm, request);
  if (rc == MPI_SUCCESS) prepares(*request, {}, 0);
  return rc;
}

// A process whose first step is a receive learns the tag here.
int irecv(void* buffer, std::size_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
          MPI_Request* request) {
  if (is_own_tag(tag)) {
    const Thread& thread = this_thread();
    const CommView* const view = view_of(thread, comm);
    cause_of(thread, comm, tag, view == nullptr ? 0 : view->index, op_now(thread));
  }
  return former.irecv(buffer, count, datatype, source, tag, comm, request);
}

int isend_init(const void* buffer, std::size_t count, MPI_Datatype datatype, int peer, int tag, int mode, MPI_Comm comm,
               MPI_Request* request) {
  const int rc = former.isend_init(buffer, count, datatype, peer, tag, mode, comm, request);
  if (rc == MPI_SUCCESS) {
    const Message m = message_to(this_thread(), peer, tag, comm, Flow::collective_start);
    prepares(*request, m, bytes_of(count, datatype));
  }
  return rc;
}

int isend(const void* buffer, std::size_t count, MPI_Datatype datatype, int peer, int tag, int mode, MPI_Comm comm,
          MPI_Request* request) {
  sends(count, datatype, peer, tag, comm, Flow::collective);
  return former.isend(buffer, count, datatype, peer, tag, mode, comm, request);
}

int send(const void* buffer, std::size_t count, MPI_Datatype datatype, int peer, int tag, int mode, MPI_Comm comm) {
  sends(count, datatype, peer, tag, comm, Flow::collective_send);
  return former.send(buffer, count, datatype, peer, tag, mode, comm);
}

int start(std::size_t count, MPI_Request* array) {
  is_used.store(true, std::memory_order_relaxed);
  for (std::size_t i = 0; i < count && is_watching.load(std::memory_order_relaxed); ++i) {
    const Prepared* const p = prepared_of(array[i]);
    if (p == nullptr || !p->message.counts) continue;
    const Message& m = p->message;
    count_message(this_thread(), m.flow, m.comm, m.op, m.peer, p->bytes, m.size);
  }
  return former.start(count, array);
}

// An entry of the table: its name, its index relative to the first one, our function and the library's.
struct Entry {
  const char* name;
  int place;
  void* ours;
  void* theirs;
};

template <class Function>
void* address_of(Function function) noexcept {
  return reinterpret_cast<void*>(function);
}

Entry entries[] = {
    {"irecv_init", 0, address_of(irecv_init), nullptr},
    {"irecv", 1, address_of(irecv), nullptr},
    {"isend_init", 3, address_of(isend_init), nullptr},
    {"isend", 4, address_of(isend), nullptr},
    {"send", 5, address_of(send), nullptr},
    {"start", 8, address_of(start), nullptr},
};
constexpr int slots = 20;  // the table has at least so many functions
void** first_slot = nullptr;

// Returns whether every entry is at its index, counted from `first`, and at no other, and is a function of the
// component.
bool is_at(void** table, int first, const char* component) noexcept {
  for (Entry& entry : entries) {
    char name[64];
    std::snprintf(name, sizeof name, "mca_pml_%s_%s", component, entry.name);
    void* const function = table[first + entry.place];
    if (function == nullptr || find_symbol_beside(function, name) != function) return false;
    int times = 0;
    for (int i = 0; i < slots; ++i) times += table[i] == function ? 1 : 0;
    if (times != 1) return false;
    entry.theirs = function;
  }
  return true;
}

// Installs our functions.  The table is writable, because the library fills it in MPI_Init.  Returns null, or why it
// failed.
const char* take_table() noexcept {
  void* const table = data_definition("mca_pml");
  void* copy[slots];
  if (table == nullptr || !read_memory(table, copy, sizeof copy))
    return "this Open MPI has no readable table of its point-to-point layer";
  for (const char* component : {"ob1", "ucx", "monitoring"}) {
    for (const int first : {6, 7}) {  // Open MPI 4 and 5
      if (!is_at(copy, first, component)) continue;
      first_slot = static_cast<void**>(table) + first;
      void** const former_entries[] = {
          reinterpret_cast<void**>(&former.irecv_init), reinterpret_cast<void**>(&former.irecv),
          reinterpret_cast<void**>(&former.isend_init), reinterpret_cast<void**>(&former.isend),
          reinterpret_cast<void**>(&former.send),       reinterpret_cast<void**>(&former.start)};
      for (std::size_t i = 0; i < std::size(entries); ++i) *former_entries[i] = entries[i].theirs;
      for (const Entry& entry : entries) __atomic_store_n(&first_slot[entry.place], entry.ours, __ATOMIC_RELEASE);
      return nullptr;
    }
  }
  return "this Open MPI uses a point-to-point layer that commlens does not know";
}

// Restores the table, except for entries that another tool has replaced since: they still lead to our functions.
void give_table_back() noexcept {
  for (const Entry& entry : entries) {
    void* expected = entry.ours;
    __atomic_compare_exchange_n(&first_slot[entry.place], &expected, entry.theirs, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
  }
}

// Returns whether the application has sent messages that did not pass through the table.
bool is_bypassed() {
  if (is_used.load()) return false;
  bool are_there = false;
  each_peer([&are_there](const PeerCell& cell) { are_there = are_there || flow_of(cell.key) == Flow::sent; });
  return are_there;
}

// Learns the datatypes that most programs use, so that they are known before the first collective with them
// (Call::compute_bin_ahead).
void learn_datatypes() noexcept {
  for (const char* const name : {"ompi_mpi_byte",          "ompi_mpi_char",          "ompi_mpi_signed_char",
                                 "ompi_mpi_unsigned_char", "ompi_mpi_short",         "ompi_mpi_unsigned_short",
                                 "ompi_mpi_int",           "ompi_mpi_unsigned",      "ompi_mpi_long",
                                 "ompi_mpi_unsigned_long", "ompi_mpi_long_long_int", "ompi_mpi_unsigned_long_long",
                                 "ompi_mpi_float",         "ompi_mpi_double",        "ompi_mpi_long_double",
                                 "ompi_mpi_c_bool",        "ompi_mpi_cxx_bool",      "ompi_mpi_int8_t",
                                 "ompi_mpi_int16_t",       "ompi_mpi_int32_t",       "ompi_mpi_int64_t",
                                 "ompi_mpi_uint8_t",       "ompi_mpi_uint16_t",      "ompi_mpi_uint32_t",
                                 "ompi_mpi_uint64_t",      "ompi_mpi_c_complex",     "ompi_mpi_c_double_complex",
                                 "ompi_mpi_character",     "ompi_mpi_logical",       "ompi_mpi_integer",
                                 "ompi_mpi_real",          "ompi_mpi_dblprec",       "ompi_mpi_cplex",
                                 "ompi_mpi_dblcplex",      "ompi_mpi_2int",          "ompi_mpi_double_int",
                                 "ompi_mpi_float_int"}) {
    if (void* const datatype = data_definition(name); datatype != nullptr)
      foresee_datatype(static_cast<MPI_Datatype>(datatype));
  }
}

const char* begin_watching() noexcept {
  learn_kinds();
  learn_datatypes();
  group_of = reinterpret_cast<decltype(group_of)>(next_definition("ompi_comm_group").address);
  return take_table();
}

void end_watching() noexcept {
  if (is_bypassed()) why_not = "this Open MPI bypasses the table of its point-to-point layer";
}

#else

const char* begin_watching() noexcept { return "only Open MPI exposes them"; }
void give_table_back() noexcept {}
void end_watching() noexcept {}

#endif

}  // namespace

void install_pml_hook() noexcept {
  if (!matrix_choice.inside || is_watching || why_not != nullptr) return;
  why_not = begin_watching();
  is_watching = why_not == nullptr;
  if (!is_watching && job.rank == 0)
    say("COMMLENS_MATRIX=all: the messages inside collectives are not measured: %s", why_not);
}

void remove_pml_hook() noexcept {
  if (!is_watching) return;
  is_watching = false;
  give_table_back();
  end_watching();
}

void remove_pml_hook_in_child() noexcept {
  if (is_watching) give_table_back();
  is_watching = false;
}

void hide_messages(const Thread& thread) noexcept { hidden_since = thread.current.since; }

std::string pml_hook_outcome() {
  if (!matrix_choice.inside) return "not asked for";
  return why_not == nullptr ? "measured" : std::string("not seen: ") + why_not;
}

}  // namespace commlens
