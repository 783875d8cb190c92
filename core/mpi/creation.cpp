// SPDX-License-Identifier: Apache-2.0
// Computes the identity of a communicator from facts that every member knows without communication
// (docs/decisions/0005-identity.md).
#include "core/mpi/creation.h"
#include "core/mpi/barriers.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/locks.h"
#include "core/base/say.h"
#include "core/job/counting.h"
#include "core/job/job.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/wrap.h"
#include "core/process/coverage.h"
#include "core/state/online.h"
#include "core/state/sites.h"
#include "core/state/traffic.h"

namespace commlens {
namespace {

constexpr Identity unknown_processes = 0x756e6b6e6f776eu;
constexpr Identity limit_mark = 0x616c696b65u;

void say_no_memory() {
  say("rank %d: no memory for another communicator; its calls are counted without a communicator", job.rank);
}

// Returns the world ranks of the members of `group`; MPI_UNDEFINED for those outside this world.
std::vector<int> world_ranks(MPI_Group group) {
  int size = 0;
  api.Group_size(group, &size);
  std::vector<int> here(static_cast<std::size_t>(size)), world(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    here[static_cast<std::size_t>(i)] = i;
    world[static_cast<std::size_t>(i)] = MPI_UNDEFINED;
  }
  if (size > 0 && job_groups.world != MPI_Group{})
    api.Group_translate_ranks(group, size, here.data(), job_groups.world, world.data());
  return world;
}

Identity members_as_identity(const std::vector<int>& ranks) {
  return identity_of(ranks.data(), ranks.size() * sizeof(int));
}

// Returns a number that is the same on every member: it depends on the processes and their order.
Identity processes_of(MPI_Group group, bool& all_here) {
  const std::vector<int> world = world_ranks(group);
  all_here = std::find(world.begin(), world.end(), MPI_UNDEFINED) == world.end();
  return members_as_identity(world);
}

// Returns the world rank of rank 0 of `group`, or -1 if it is of another world.
int leader_of(MPI_Group group) {
  int zero = 0, leader = MPI_UNDEFINED;
  if (job_groups.world != MPI_Group{}) api.Group_translate_ranks(group, 1, &zero, job_groups.world, &leader);
  return leader == MPI_UNDEFINED ? -1 : leader;
}

// Returns whether a procedure keeps the processes of the parent, in their order.
bool is_duplicate(Op op) noexcept {
  return op == op::MPI_Comm_dup || op == op::MPI_Comm_dup_with_info || op == op::MPI_Comm_idup ||
         op == op::MPI_Comm_idup_with_info;
}

class Groups {
 public:
  explicit Groups(MPI_Comm comm, bool inter) {
    api.Comm_group(comm, &local);
    if (inter) api.Comm_remote_group(comm, &remote);
    inter_ = inter;
  }
  ~Groups() {
    api.Group_free(&local);
    if (inter_) api.Group_free(&remote);
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  MPI_Group local, remote;

 private:
  bool inter_;
};

// Returns a number that is the same on every member in this world; for an intercommunicator, on both sides.
Identity members_of(MPI_Comm comm) {
  int inter = 0;
  bool all_here = true;
  api.Comm_test_inter(comm, &inter);
  const Groups groups(comm, inter != 0);
  const Identity local = processes_of(groups.local, all_here);
  return inter != 0 ? local + processes_of(groups.remote, all_here) : local;
}

// Returns the kind of a topology; derived from the procedure that created the communicator.  In Open MPI 5.0,
// MPI_Topo_test is wrong for a distributed graph that was created from a graph, and further queries then end the
// process.
int kind_of_topology(MPI_Comm comm, Op op) {
  int kind = MPI_UNDEFINED;
  switch (op) {
    case op::MPI_Cart_create:
    case op::MPI_Cart_sub: return MPI_CART;
    case op::MPI_Graph_create: return MPI_GRAPH;
    case op::MPI_Dist_graph_create:
    case op::MPI_Dist_graph_create_adjacent: return MPI_DIST_GRAPH;
    case op::unknown: api.Topo_test(comm, &kind); return kind;
    default: return kind;
  }
}

// Stores the facts about a topology that the byte rules of collectives need, and its text for the report.
void describe_topology(MPI_Comm comm, Op op, const CommView& parent, CommRecord& record) {
  CommView& view = record.view;
  if (is_duplicate(op) && parent.index != 0) {
    view.sources = parent.sources;
    view.destinations = parent.destinations;
    view.source_slots = parent.source_slots;
    view.destination_slots = parent.destination_slots;
    view.absent = parent.absent;
    view.neighbors = parent.neighbors;
    record.topology = registry->topology(parent.index);
    return;
  }
  const int kind = kind_of_topology(comm, op);
  if (kind == MPI_CART) {
    int n = 0;
    api.Cartdim_get(comm, &n);
    const auto dimensions = static_cast<std::size_t>(n);
    std::vector<int> dims(dimensions + 1), periods(dimensions + 1), coords(dimensions + 1);
    if (n > 0) api.Cart_get(comm, n, dims.data(), periods.data(), coords.data());
    record.topology = "cart ";
    for (std::size_t d = 0; d < dimensions; ++d) {
      record.topology += (d == 0 ? "" : "x") + std::to_string(dims[d]);
      // Neighbours are in pairs, downwards and upwards, one dimension after the other.
      const bool below = periods[d] == 0 && coords[d] == 0;
      const bool above = periods[d] == 0 && coords[d] == dims[d] - 1;
      if (2 * d + 1 < 64) {
        view.absent |= (below ? std::uint64_t{1} : 0) << (2 * d) | (above ? std::uint64_t{1} : 0) << (2 * d + 1);
      }
      view.sources += (below ? 0 : 1) + (above ? 0 : 1);
    }
    record.topology += " periodic ";
    for (std::size_t d = 0; d < dimensions; ++d) record.topology += periods[d] != 0 ? '1' : '0';
    view.destinations = view.sources;
    view.source_slots = view.destination_slots = 2 * n;
    record.neighbors.resize(2 * dimensions);
    for (int d = 0; d < n; ++d) {
      int* const pair = &record.neighbors[2 * static_cast<std::size_t>(d)];
      api.Cart_shift(comm, d, 1, &pair[0], &pair[1]);
    }
  } else if (kind == MPI_GRAPH) {
    int nodes = 0, edges = 0;
    api.Graphdims_get(comm, &nodes, &edges);
    api.Graph_neighbors_count(comm, view.rank, &view.sources);
    record.topology = "graph " + std::to_string(nodes) + " nodes " + std::to_string(edges) + " edges";
    view.destinations = view.source_slots = view.destination_slots = view.sources;
    record.neighbors.resize(static_cast<std::size_t>(view.destinations));
    api.Graph_neighbors(comm, view.rank, view.destinations, record.neighbors.data());
  } else if (kind == MPI_DIST_GRAPH) {
    int weighted = 0;
    api.Dist_graph_neighbors_count(comm, &view.sources, &view.destinations, &weighted);
    record.topology = weighted != 0 ? "dist_graph weighted" : "dist_graph";
    view.source_slots = view.sources;
    view.destination_slots = view.destinations;
    record.neighbors.resize(static_cast<std::size_t>(view.destinations));
    std::vector<int> sources(static_cast<std::size_t>(view.sources)), weights(sources.size() + record.neighbors.size());
    api.Dist_graph_neighbors(comm, view.sources, sources.data(), weights.data(), view.destinations,
                             record.neighbors.data(), weights.data() + sources.size());
  }
  view.neighbors = record.neighbors.data();
}

// The creations that MPI_Comm_idup has begun.  There are few at a time.
struct Pending {
  Op op;
  const CommView* parent;
  MPI_Comm* variable;
  MPI_Comm value;  // what MPI stored during the call, or MPI_COMM_NULL
  std::uint32_t n;
  Site site;
};
std::mutex pending_mutex;
std::unordered_map<Payload, Pending>& pending() {
  // Never destroyed, because a thread may still be in MPI while the program exits.
  static auto* const made = new std::unordered_map<Payload, Pending>;
  return *made;
}

// Returns the communicator that was created.  Fortran bindings pass the address of a local variable, which no longer
// exists when the request completes.  So the value that MPI stored during the call is preferred, if there is one.
MPI_Comm made_by(const Pending& p) noexcept { return p.value != api.comm_null ? p.value : *p.variable; }

// The facts that identify the members of a communicator, equal on all of them.
struct Membership {
  Identity leaders = 0;
  Identity processes = 0;  // only of communicators that are identified by their processes
  bool all_here = true;    // whether all of these processes are known
};

bool is_by_processes(const Origin& origin) noexcept {
  return origin.how == Origin::How::by_processes || origin.how == Origin::How::by_meeting;
}

// Whether a communicator has the processes of its parent, in the same order.
bool has_all_of_parent(Op op, const CommView& parent) noexcept {
  return is_duplicate(op) && parent.index != 0 && !parent.inter;
}

void describe_own_place(Op op, const CommView& parent, MPI_Comm made, CommView& view) {
  if (has_all_of_parent(op, parent)) {
    view.rank = parent.rank;
    view.size = parent.size;
  } else {
    int inter = 0;
    api.Comm_test_inter(made, &inter);
    api.Comm_rank(made, &view.rank);
    api.Comm_size(made, &view.size);
    view.inter = inter != 0;
  }
  view.blocks = view.size;
}

// Stores the sizes and the leader of an intercommunicator, and returns its members.
Membership members_of_inter(MPI_Comm made, const Origin& origin, CommRecord& record) {
  Membership members;
  const Groups groups(made, true);
  api.Comm_remote_size(made, &record.remote_size);
  record.view.blocks = record.remote_size;
  const int local = record.view.rank == 0 ? job.rank : leader_of(groups.local);
  const int remote = leader_of(groups.remote);
  // Both sides order the leaders alike; one of another world is always second.
  const bool swap = remote >= 0 && (local < 0 || remote < local);
  record.second_side = swap;
  record.leader = swap ? remote : local;
  members.leaders = combine(static_cast<Identity>(swap ? remote : local), static_cast<Identity>(swap ? local : remote));
  if (local < 0 && remote < 0) members.leaders = members_of(made);
  if (is_by_processes(origin)) {
    bool local_here = true, remote_here = true;
    const Identity a = processes_of(groups.local, local_here);
    const Identity b = processes_of(groups.remote, remote_here);
    members.processes = swap ? combine(b, a) : combine(a, b);
    members.all_here = local_here && remote_here;
  }
  return members;
}

// Stores the leader of an intracommunicator, and returns its members.
Membership members_of_intra(Op op, const CommView& parent, MPI_Comm made, const Origin& origin, CommRecord& record) {
  Membership members;
  if (is_by_processes(origin)) {
    const Groups groups(made, false);
    record.leader = leader_of(groups.local);
    members.processes = processes_of(groups.local, members.all_here);
  } else if (record.view.rank == 0) {
    record.leader = job.rank;
  } else if (has_all_of_parent(op, parent)) {
    record.leader = registry->leader(parent.index);
  } else if (origin.leader >= 0) {
    record.leader = origin.leader;
  } else {
    // Expensive: Open MPI searches the world, and MPICH keeps a group of the communicator's size in it.
    record.leader = leader_of(Groups(made, false).local);
  }
  // A leader of another world has no rank here.  The members in this world identify the communicator as well.
  members.leaders = record.leader >= 0 ? static_cast<Identity>(record.leader) : members_of(made);
  return members;
}

// Returns the identity that all communicators share that were created in the same way, equal on all members.
Identity identity_of_origin(Op op, const Lineage& from, const Origin& origin, const Membership& members) noexcept {
  Identity identity = combine(from.root != 0 ? from.root : from.identity, op);
  // Both sides of an intercommunicator must get the same number, though they have called different procedures and have
  // no parent in common.  If the other side is of another world, it has a profile of its own.
  if (is_by_processes(origin)) identity = members.processes;
  if (origin.how == Origin::How::under_group) identity = combine(identity, origin.processes);
  return combine(identity, members.leaders);
}

// Stores identity, kin and depth.  The communicator's number is the one among those of the same origin, or among the
// creations on its parent.  If there is a tag, the number among those with the same tag identifies it.  Threads that
// create communicators of one group at the same time use different tags.
void identify(Op op, const CommView& parent, const Origin& origin, const Membership& members, std::uint32_t n_on_parent,
              CommRecord& record) {
  const Lineage from = registry->lineage(parent.index);
  Identity of_origin = identity_of_origin(op, from, origin, members);
  const bool has_tag = origin.how != Origin::How::on_parent && origin.how != Origin::How::by_world;
  const std::uint32_t number = has_tag ? registry->next_under(of_origin) : n_on_parent;

  // All members count alike, so all decide alike.
  const auto limit = static_cast<std::uint32_t>(options().number(Option::comms));
  const bool child = origin.how == Origin::How::on_parent || origin.how == Origin::How::under_group;
  const auto first = static_cast<Identity>(record.second_side ? record.remote_size : record.view.size);
  const auto second = static_cast<Identity>(record.second_side ? record.view.size : record.remote_size);
  record.depth = child ? from.depth + 1 : 1;
  const bool is_beyond = number >= limit || (child && (from.root != 0 || record.depth > limit));
  const Identity tag = is_beyond ? 0 : origin.key;  // those beyond the limit share a record, whatever their tags
  std::uint32_t n = is_beyond ? limit : number;
  if (has_tag && !is_beyond) {
    of_origin = combine(of_origin, tag);
    n = registry->next_under(of_origin);
  }
  record.kin = is_by_processes(origin) ? combine(tag, limit_mark) : combine(from.kin, op);
  if (origin.how == Origin::How::under_group) record.kin = combine(record.kin, tag);
  record.kin = combine(combine(combine(record.kin, first), second), n);
  if (is_beyond) {
    record.root = child ? (from.root != 0 ? from.root : from.identity) : of_origin;
    record.identity = combine(combine(combine(of_origin, first), second), limit_mark);
  } else if (origin.how == Origin::How::by_world) {
    record.identity = mixed(op);
  } else {
    record.identity = combine(of_origin, n);
    if (!members.all_here) record.identity = combine(record.identity, unknown_processes);
  }
}

void add(Op op, const CommView& parent, MPI_Comm made, const Origin& origin, std::uint32_t n_on_parent, Site site) {
  CommRecord record;
  describe_own_place(op, parent, made, record.view);
  record.kind = record.view.inter ? CommKind::inter : CommKind::intra;
  record.parent = parent.index;
  record.op = op;
  record.letter = op == op::unknown ? letter_unknown : op_facts[op].letter;
  record.site = site;
  const Membership members =
      record.view.inter ? members_of_inter(made, origin, record) : members_of_intra(op, parent, made, origin, record);
  if (!record.view.inter) describe_topology(made, op, parent, record);
  identify(op, parent, origin, members, n_on_parent, record);

  const CommView& known =
      record.root != 0 ? registry->add_sibling(std::move(record)) : registry->add(std::move(record), true);
  if (known.index == 0 || !comms.put(bits(made), const_cast<CommView*>(&known))) say_no_memory();
  registry->handle(known.index, bits(made));
}

}  // namespace

namespace identity {

Origin processes(const char* stringtag) noexcept {
  return {Origin::How::by_processes, identity_of(stringtag, std::strlen(stringtag))};
}

Origin group(MPI_Group group, int tag) noexcept try {
  Origin origin{Origin::How::under_group, static_cast<Identity>(tag)};
  if (!job.ready) return origin;
  const std::vector<int> members = world_ranks(group);
  origin.processes = members_as_identity(members);
  if (!members.empty() && members[0] != MPI_UNDEFINED) origin.leader = members[0];
  return origin;
} catch (const std::bad_alloc&) {
  return {Origin::How::under_group, static_cast<Identity>(tag)};
}

}  // namespace identity

void created(Op op, const CommView& parent, MPI_Comm made, const Origin& origin, Site site) noexcept try {
  if (!job.ready) return;
  const std::uint32_t n = origin.how == Origin::How::on_parent ? registry->next_on_parent(parent.index) : 0;
  // MPI_Comm_get_parent returns the same communicator at every call.
  if (made == api.comm_null || comms.find(bits(made)) != nullptr) return;
  add(op, parent, made, origin, n, site);
} catch (const std::bad_alloc&) {
  say_no_memory();
}

bool made_in_callback(Site caller) noexcept try {
  const Module* const module = module_of_site(caller);
  return module != nullptr && !is_mpi_library(module->path);
} catch (const std::bad_alloc&) {
  return false;
}

void creating(Op op, const CommView& parent, MPI_Comm* made, bool set_already, Payload payload, Site site) noexcept
    try {
  if (!job.ready) return;
  const std::uint32_t n = registry->next_on_parent(parent.index);
  const std::lock_guard<std::mutex> lock(pending_mutex);
  pending()[payload & ~RequestFlag::all] = {op, &parent, made, set_already ? *made : api.comm_null, n, site};
} catch (const std::bad_alloc&) {
  say_no_memory();
}

void creation_completed(Payload payload, bool succeeded) noexcept try {
  Pending p;
  {
    const std::lock_guard<std::mutex> lock(pending_mutex);
    const auto found = pending().find(payload & ~RequestFlag::all);
    if (found == pending().end()) return;
    p = found->second;
    pending().erase(found);
  }
  if (!succeeded) return;
  MPI_Comm made = made_by(p);
  if (made == api.comm_null || comms.find(bits(made)) != nullptr) return;
  add(p.op, *p.parent, made, identity::parent(), p.n, p.site);
} catch (const std::bad_alloc&) {
  say_no_memory();
}

bool has_pending() noexcept {
  const std::lock_guard<std::mutex> lock(pending_mutex);
  return !pending().empty();
}

// Returns whether a communicator's request is not complete; until then, MPI must not be queried about it.
static bool is_pending(MPI_Comm comm) {
  const std::lock_guard<std::mutex> lock(pending_mutex);
  for (const auto& [begun, p] : pending()) {
    if (made_by(p) == comm) return true;
  }
  return false;
}

// Registers a communicator whose creation commlens did not see.
static const CommView& adopt_comm(MPI_Comm comm) noexcept try {
  if (!job.ready || comm == api.comm_null) return no_comm();
  static std::mutex mutex;  // two threads may use it at the same time
  const std::lock_guard<std::mutex> lock(mutex);
  // mpi4py sets the error handler of a communicator before its MPI_Comm_idup completes.
  if (is_pending(comm)) return no_comm();
  created(op::unknown, no_comm(), comm, {Origin::How::by_processes, 0}, 0);
  return known_comm(comm);
} catch (const std::bad_alloc&) {
  return no_comm();
}

const CommView& late_comm(MPI_Comm comm, int rc, std::uint64_t freed) noexcept {
  const HandleMap::Since then = comms.find_since(bits(comm), freed);
  if (then.value != nullptr) return *static_cast<const CommView*>(then.value);
  return !then.gone && rc == MPI_SUCCESS ? adopt_comm(comm) : no_comm();
}

const CommView* before_comm_free(MPI_Comm comm) noexcept try {
  free_barrier(comm);
  if (const void* const going = comms.find(bits(comm)); going != nullptr)
    remember_members(static_cast<const CommView*>(going)->index);
  const CommView* known = nullptr;
  {
    const std::lock_guard<std::mutex> lock(locks::peers);  // another thread may be querying its group
    known = static_cast<const CommView*>(comms.take(bits(comm)));
  }
  if (known != nullptr || comm == api.comm_null) return known;
  // The application has noticed the completion in a way that commlens does not see, and frees the communicator before
  // it completes the request.  Forgets the creation, so that the freed communicator is not used then.
  const std::lock_guard<std::mutex> lock(pending_mutex);
  auto& all = pending();
  for (auto p = all.begin(); p != all.end();) p = made_by(p->second) == comm ? all.erase(p) : std::next(p);
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void after_comm_free(const CommView* view) noexcept {
  forget_mark(view->index);
  registry->freed(view->index);
}
void undo_comm_free(MPI_Comm comm, const CommView* view) noexcept {
  comms.put(bits(comm), const_cast<CommView*>(view));
}

void name_comm(MPI_Comm comm, const char* name) noexcept {
  const void* const known = comms.find(bits(comm));
  if (known != nullptr) registry->name(static_cast<const CommView*>(known)->index, name);
}

void made_window(MPI_Win win, const CommView& comm) noexcept { windows.put(bits(win), const_cast<CommView*>(&comm)); }
void before_win_free(MPI_Win win) noexcept { windows.take(bits(win)); }

void made_file(MPI_File file, const CommView& comm) noexcept {
  auto* const record = new (std::nothrow) FileRecord{&comm, nullptr};
  if (record != nullptr && !files.put(bits(file), record)) delete record;
}

void before_file_close(MPI_File file) noexcept { delete static_cast<FileRecord*>(files.take(bits(file))); }

void remember_persistent(Thread& thread, MPI_Request request, Cell& maker, const CommView& comm, const Volume& v,
                         Payload flags, OperationOf of) noexcept {
  if (request == api.request_null || is_shared(request)) return;
  PersistentRequest* const p = new_persistent();
  if (p == nullptr) {
    forget_request(thread, maker);
    return;
  }
  const bool is_partitioned = op_of_key(maker.key) == op::MPI_Psend_init;
  const int tag_or_flags = of.channel != nullptr ? static_cast<int>(of.flags) : thread.current.to.tag;
  const int tag = is_partitioned ? PersistentRequest::no_tag : tag_or_flags;
  *p = {&maker, v.sent, v.received, v.to, v.from, v.exchanged, nullptr, v.shape, tag, of.channel};
  const bool has_blocks = matrix_choice.peers && v.parts.slots > 0;
  if (has_blocks && v.parts.are_kept()) {
    p->shares = new (std::nothrow) Share[static_cast<std::size_t>(v.parts.slots) + 1];
    if (p->shares == nullptr) p->shape = Flow::count;
  }
  Share* next = p->shares;
  if (has_blocks) {
    v.each_block(comm, [&](int peer, Bytes bytes) {
      if (next != nullptr) *next++ = {peer, bytes};
      p->exchanged += bytes;
    });
  }
  if (next != nullptr) *next = {-1, 0};
  if (!requests.put(bits(request), make_payload(p, flags, ++thread.sequence))) {
    free_persistent(p);
    forget_request(thread, maker);
  }
}

}  // namespace commlens
