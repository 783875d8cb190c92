// SPDX-License-Identifier: Apache-2.0
// Collects the profile of this job over MPI or, where the ranks cannot communicate, through files.  core/collect/
// merges and writes.
#include "core/mpi/finalize.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "core/base/floating_point.h"
#include "core/base/say.h"
#include "core/collect/collect.h"
#include "core/collect/without_messages.h"
#include "core/job/counting.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/job/selection.h"
#include "core/mpi/finalize_facts.h"
#include "core/mpi/state.h"
#include "core/mpi/world.h"
#include "core/state/regions.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

// While it exists, errors on MPI_COMM_WORLD are returned to us: they neither end the application nor reach its error
// handler.
class OwnErrors {
 public:
  OwnErrors() noexcept {
    is_set_ = api.Comm_get_errhandler(api.comm_world, &before_) == MPI_SUCCESS &&
              api.Comm_set_errhandler(api.comm_world, api.errors_return) == MPI_SUCCESS;
  }
  ~OwnErrors() {
    if (!is_set_) return;
    api.Comm_set_errhandler(api.comm_world, before_);
    api.Errhandler_free(&before_);
  }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;

 private:
  MPI_Errhandler before_;
  bool is_set_;
};

// Returns whether this rank has begun a collective on MPI_COMM_WORLD and never completed it.  This is an error in the
// application, which most MPI libraries tolerate.  But if other ranks have not begun that collective, no later one on
// MPI_COMM_WORLD completes.
bool has_unfinished_collective() {
  const auto* const world = static_cast<const CommView*>(comms.find(bits(api.comm_world)));
  if (world == nullptr || job.size == 1) return false;
  return requests.any([world](const Cell& maker, Payload payload) {
    const bool is_collective =
        (payload & RequestFlag::awaited) != 0 || std::strcmp(op_facts[op_of_key(maker.key)].klass, "collective") == 0;
    const bool is_active = (payload & RequestFlag::persistent) == 0 || (payload & RequestFlag::active) != 0;
    return is_collective && is_active && comm_of_key(maker.key) == world->index;
  });
}

Identity random_id() {
  Identity id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) id = combine(static_cast<Identity>(getpid()), now());
  return id;
}

enum class Outcome { done, too_early, late, through_files };

Outcome collect_all(Ticks begin) {
  if (has_unfinished_collective()) return Outcome::through_files;
  say_if_launcher_disagrees();
  World all;
  Identity world = job.rank == 0 ? random_id() : 0;
  Contribution own = own_contribution_to_all(begin);
  own.world = &world;
  const CollectResult collected = collect_together(all, std::move(own));
  job.waited = all.waited();
  switch (collected) {
    case CollectResult::stored: remove_arena(); break;
    case CollectResult::not_stored: break;
    case CollectResult::not_begun:
      if (all.arrivals() == Arrivals::late) return Outcome::late;
      if (all.arrivals() == Arrivals::through_files) return Outcome::through_files;
      break;
    case CollectResult::no_messages:
      return Outcome::through_files;  // the application may have used up all communicators
    case CollectResult::too_early: job.world_id = world; return Outcome::too_early;
  }
  return Outcome::done;
}

// Writes a profile of this rank only, if other ranks do not arrive.
void collect_own(Ticks begin) {
  say("rank %d: other ranks did not reach MPI_Finalize in %lu s (COMMLENS_PATIENCE), or do not run under commlens; "
      "this rank writes a profile of its own",
      job.rank, patience(options()));
  const std::string mark = ".rank" + std::to_string(job.rank);
  if (collect_alone(own_contribution(begin, own_destination(mark)), job.size)) remove_arena();
}

}  // namespace

bool collect(Ticks begin) noexcept try {
  const QuietFloatingPoint quiet;
  close_regions();
  const OwnErrors own_errors;
  switch (collect_all(begin)) {
    case Outcome::done: break;
    case Outcome::too_early: return false;
    case Outcome::late: collect_own(begin + job.waited); break;
    case Outcome::through_files:
      if (job.sessions > 0) return false;  // sessions end later
      collect_at_exit();
      break;
  }
  return true;
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
  return true;
}

void collect_at_exit() noexcept try {
  const QuietFloatingPoint quiet;
  close_regions();
  const Ticks begin = now();
  if (job.sessions > 0) {  // the application left them open
    job.ended = begin;
    job.use_at_end = counted_use();
  }
  if (job.world_id == 0) job.world_id = job.size == 1 ? random_id() : launch_of_job();
  Contribution own = own_contribution(begin, own_destination());
  if (job.size == 1) {
    if (collect_alone(std::move(own), job.size)) remove_arena();
    return;
  }
  out::Parts parts = parts_of_job();
  OwnPart part = put_part(std::move(own), job.rank, job.size, launch_of_job(), parts);
  const bool is_there = part.is_there;
  if (is_there) remove_arena();
  if (merge_parts(std::move(part), parts) && !is_there) remove_arena();
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
}

}  // namespace commlens
