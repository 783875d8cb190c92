// SPDX-License-Identifier: Apache-2.0
// commlens_reorder() of include/commlens/commlens.h.
//
// Each process first splits the communicator, by whether it can say what it has exchanged.  The functions of
// libcommlens-api do the same (core/api/duplicate.c).  If the part has all processes, they agree on an order within it;
// otherwise all duplicate the communicator.  So the call ends also in a job of which only some processes are profiled.
#include <mpi.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "core/api/duplicate.h"
#include "core/api/place.h"
#include "core/base/floating_point.h"
#include "core/base/ticks.h"
#include "core/job/annotate.h"
#include "core/job/job.h"
#include "core/mpi/bind.h"
#include "core/mpi/creation.h"
#include "core/mpi/peers.h"
#include "core/mpi/pml_hook.h"
#include "core/mpi/reorder_plan.h"
#include "core/mpi/wrap.h"
#include "core/state/regions.h"
#include "core/state/traffic.h"
#include "include/commlens/commlens.h"

#define COMMLENS_PUBLIC extern "C" __attribute__((visibility("default")))

using namespace commlens;

namespace {

constexpr int failed = -1, duplicated = 0, reordered = 1;
constexpr int counts = 0, counts_not = 1;  // colours; core/api/duplicate.c has the second one, too

// A Cartesian grid, or none.  Other topologies cannot be given to another order by local means.
struct Grid {
  static constexpr int most = 32;
  int dimensions = 0;
  bool is_kept = true;
  int sizes[most], periods[most], own[most];
};

Grid grid_of(MPI_Comm comm) noexcept {
  Grid grid;
  int kind = MPI_UNDEFINED;
  if (api.Topo_test(comm, &kind) != MPI_SUCCESS) return grid;
  if (kind == MPI_CART) {
    grid.is_kept = api.Cartdim_get(comm, &grid.dimensions) == MPI_SUCCESS && grid.dimensions <= Grid::most &&
                   api.Cart_get(comm, grid.dimensions, grid.sizes, grid.periods, grid.own) == MPI_SUCCESS;
  } else {
    grid.is_kept = kind == MPI_UNDEFINED;
  }
  return grid;
}

// One call of commlens_reorder().  Not an object that cleans up: an error handler of the application may throw through
// the MPI calls of reorder_inside().  Nothing in it needs a personality routine then, because functions that do are not
// inlined.
struct Asked {
  ReorderStatement* statement;  // null: cannot say, or no memory; or no longer needed
  Ticks when;
  bool are_inside_known;
  bool have_all_said;  // the same on all members: each had a statement
};

// Of a call in progress; or of one that an error handler has left, in the first MPI call, by an exception or a jump.
// The thread's next call frees it.
__thread ReorderStatement* unfinished;

COMMLENS_APART Asked asked(const CommView& view, const Grid& grid) noexcept {
  const QuietFloatingPoint quiet;
  Asked call{nullptr, 0, false, false};
  delete unfinished;
  unfinished = nullptr;
  if (view.index != 0 && !view.inter && grid.is_kept) {
    std::optional<ReorderStatement> own = own_statement(view.index, view.size);
    if (own) call.statement = new (std::nothrow) ReorderStatement(std::move(*own));
  }
  unfinished = call.statement;
  call.when = now();
  return call;
}

// For the next call: what is exchanged from now on.
void mark(const MemberRanks& of, bool are_inside_known) noexcept try {
  mark_traffic(of, are_inside_known);
} catch (const std::exception&) {
  return;  // no memory: the next call counts from the last mark
}

void mark_made(MPI_Comm made, bool are_inside_known) noexcept try {
  const auto* const view = static_cast<const CommView*>(comms.find(bits(made)));
  const std::optional<MemberRanks> of = view == nullptr ? std::nullopt : members(view->index);
  if (of) mark_traffic(*of, are_inside_known);
} catch (const std::exception&) {
  return;
}

// Agrees on an order within `part`, the processes with the same colour, and frees it and the statement: the last MPI
// call may end in an exception.
COMMLENS_APART ReorderPlan plan_within(MPI_Comm part, Asked& call) noexcept {
  const QuietFloatingPoint quiet;
  ReorderPlan plan;
  int size = 0;
  api.Comm_set_errhandler(part, api.errors_return);
  if (call.statement != nullptr && api.Comm_size(part, &size) == MPI_SUCCESS &&
      static_cast<std::size_t>(size) == call.statement->members.world.size()) {
    call.statement->facts.split_ns = TickScale::since_start().ns(now() - call.when);
    plan = agreed_plan(part, *call.statement);
    call.have_all_said = true;
    call.are_inside_known = call.statement->are_inside_known;
    // Only if all do: else the next call would compare what was exchanged in different times.
    mark(call.statement->members, call.are_inside_known);
  }
  delete call.statement;
  call.statement = unfinished = nullptr;
  api.Comm_free(&part);
  return plan;
}

void record(const char* name, const char* unit, double value) noexcept {
  const std::uint64_t metric = is_annotating() ? metric_of(name, unit) : 0;
  if (metric != 0) record_metric(metric, value);
}

// Records what the call has made.
COMMLENS_APART void reordered_now(const Asked& call, const ReorderPlan& plan, MPI_Comm made, Op op,
                                  const CommView& parent, Site site, Ticks arrived) noexcept {
  const QuietFloatingPoint quiet;
  created(op, parent, made, identity::parent(), site);
  if (!call.have_all_said) return;
  mark_made(made, call.are_inside_known);
  record("commlens_reorder: gain", "%", plan.gain_percent);
  record("commlens_reorder: time", "s", static_cast<double>(TickScale::since_start().ns(now() - arrived)) * 1e-9);
}

COMMLENS_APART int gave_up(const Asked& call) noexcept {
  if (unfinished != call.statement) return failed;  // the error handler has called commlens_reorder()
  delete unfinished;
  unfinished = nullptr;
  return failed;
}

// Makes the communicator in the order of the plan.  Returns the code of MPI.
int make_ordered(MPI_Comm comm, int new_rank, const Grid& grid, MPI_Comm* made) {
  if (grid.dimensions == 0) return api.Comm_split(comm, 0, new_rank, made);
  MPI_Comm ordered = api.comm_null;
  int rc = api.Comm_split(comm, 0, new_rank, &ordered);
  if (rc != MPI_SUCCESS) return rc;
  rc = api.Cart_create(ordered, grid.dimensions, grid.sizes, grid.periods, 0, made);
  api.Comm_free(&ordered);
  return rc;
}

// Makes a duplicate without knowing anything of the communicator.
commlens_mpi mpi_of_program() noexcept {
  return commlens_find_mpi([](const char* name) {
    const bool is_variable = name[0] != 'P';
    return is_variable ? data_definition(name) : next_definition(name).address;
  });
}

bool is_counting() noexcept { return is_annotating() && job.ready; }

int reorder_inside(MPI_Comm comm, MPI_Comm* newcomm, Site site) {
  int is_inter = 0;
  if (api.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return failed;
  const CommView& view = comm_of(comm, MPI_SUCCESS, HandleMap::freed.load(std::memory_order_relaxed));
  MPI_Comm made = api.comm_null;
  if (is_inter != 0) {
    if (api.Comm_dup(comm, &made) != MPI_SUCCESS) return failed;
    created(op::MPI_Comm_dup, view, made, identity::parent(), site);
    *newcomm = made;
    return duplicated;
  }
  const Grid grid = grid_of(comm);
  Asked call = asked(view, grid);
  MPI_Comm part = api.comm_null;
  if (api.Comm_split(comm, call.statement != nullptr ? counts : counts_not, 0, &part) != MPI_SUCCESS)
    return gave_up(call);
  const Ticks arrived = now();
  const ReorderPlan plan = plan_within(part, call);
  Op op = op::MPI_Comm_dup;
  if (plan.is_better) op = grid.dimensions != 0 ? op::MPI_Cart_create : op::MPI_Comm_split;
  const int rc = plan.is_better ? make_ordered(comm, plan.new_rank, grid, &made) : api.Comm_dup(comm, &made);
  if (rc != MPI_SUCCESS) return failed;
  reordered_now(call, plan, made, op, view, site, arrived);
  *newcomm = made;
  return plan.is_better ? reordered : duplicated;
}

// The MPI calls inside, and their messages, are none of the application's; a report of a hanging process shows this
// one.
int reorder(MPI_Comm comm, MPI_Comm* newcomm, const void* place) {
  const Site site = reinterpret_cast<Site>(place) & site_mask;
#if defined(COMMLENS_PORTABLE)
  FrameRecord record(site);
  char* const frame = record.address();
#else
  char* const frame = static_cast<char*>(__builtin_frame_address(0));
#endif
  Thread& thread = this_thread();
  if (thread.is_inside(frame)) {
    hide_messages(thread);
    return reorder_inside(comm, newcomm, site);
  }
  thread.enter(frame);
  begin_call(thread.current, bits(comm), now(), site, op::MPI_Comm_split, CurrentCall::handle);
  hide_messages(thread);
  const int outcome = reorder_inside(comm, newcomm, site);
  thread.outermost = nullptr;
  return outcome;
}

}  // namespace

int commlens_reorder_number(int comm, int* newcomm, const void* place) {
  if (!is_counting()) {
    const commlens_mpi mpi = mpi_of_program();
    return commlens_duplicate_number(&mpi, comm, newcomm);
  }
  if constexpr (sizeof(MPI_Comm) == sizeof(int)) {
    MPI_Comm made{};
    const int outcome = reorder(of_bits<MPI_Comm>(static_cast<unsigned>(comm)), &made, place);
    if (outcome != failed) *newcomm = static_cast<int>(bits(made));
    return outcome;
  }
  static const auto from = library<decltype(&PMPI_Comm_f2c)>("PMPI_Comm_f2c");
  static const auto to = library<decltype(&PMPI_Comm_c2f)>("PMPI_Comm_c2f");
  if (from == nullptr || to == nullptr) return failed;
  MPI_Comm made{};
  const int outcome = reorder(from(comm), &made, place);
  if (outcome != failed) *newcomm = static_cast<int>(to(made));
  return outcome;
}

COMMLENS_PUBLIC int commlens_reorder(const void* comm, void* newcomm) {
  if (comm == nullptr || newcomm == nullptr) return failed;
  if (!is_counting()) {
    const commlens_mpi mpi = mpi_of_program();
    return commlens_duplicate(&mpi, comm, newcomm);
  }
  return reorder(*static_cast<const MPI_Comm*>(comm), static_cast<MPI_Comm*>(newcomm),
                 __builtin_extract_return_addr(__builtin_return_address(0)));
}
