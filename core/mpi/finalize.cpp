// SPDX-License-Identifier: Apache-2.0
// Collects the profile of this job over MPI or, where the ranks cannot communicate, through files.  core/collect/
// merges and writes.
#include "core/mpi/finalize.h"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
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
#include "core/mpi/job_groups.h"
#include "core/mpi/state.h"
#include "core/state/regions.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

// Our own communicator, created when it is needed: commlens never communicates on one of the application's.
MPI_Comm own_comm;

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

// All processes of MPI_COMM_WORLD, which communicate on own_comm.
class World : public Group {
 public:
  int rank() const override { return job.rank; }
  int size() const override { return job.size; }
  bool send(int to, const void* bytes, std::size_t size) override {
    return pieces(size, [&](std::size_t at, int n) {
      return api.Send(static_cast<const char*>(bytes) + at, n, api.byte, to, tag, own_comm);
    });
  }
  bool receive(int from, void* bytes, std::size_t size) override {
    return pieces(size, [&](std::size_t at, int n) {
      return api.Recv(static_cast<char*>(bytes) + at, n, api.byte, from, tag, own_comm, MPI_STATUS_IGNORE);
    });
  }

 private:
  template <class Move>
  static bool pieces(std::size_t size, Move move) {
    constexpr std::size_t limit = std::size_t{1} << 30;  // MPI counts are int
    for (std::size_t at = 0; at < size; at += limit) {
      if (move(at, static_cast<int>(std::min(limit, size - at))) != MPI_SUCCESS) return false;
    }
    return true;
  }
  static constexpr int tag = 1;
};

enum class Arrivals { all, late, through_files };

// Waits until all ranks have called it.  Uses a non-blocking barrier, so that unprofiled ranks are not disturbed and
// this rank can give up.
Arrivals all_are_present() {
  MPI_Request barrier;
  if (api.Ibarrier(api.comm_world, &barrier) != MPI_SUCCESS) return Arrivals::late;
  // Seconds until a message says what this rank waits for.  Rank 0 prints it or, if that rank runs without commlens,
  // the last one.
  const unsigned long first_word = job.rank == 0 ? 30 : 60;
  const bool speaks = job.rank == 0 || job.rank == job.size - 1;
  const unsigned long limit = patience(options());
  const Ticks begin = nanoseconds();  // somebody may set the clock of this node
  unsigned long last_check = 0;
  bool said = false;
  for (unsigned long tries = 0;; ++tries) {
    int done = 0;
    if (api.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return Arrivals::late;
    if (done != 0) return Arrivals::all;
    const unsigned long waited = (nanoseconds() - begin) / 1'000'000'000;
    if (waited >= limit) return Arrivals::late;
    if (waited > last_check) {  // once a second
      last_check = waited;
      if (parts_of_job().has_begun()) return Arrivals::through_files;
    }
    if (waited >= first_word && !said && speaks) {
      say("rank %d waits in MPI_Finalize for other ranks, at most %lu s. Do all of them run under commlens?", job.rank,
          limit);
      said = true;
    }
    // Late ranks may need this core.
    if (tries < 1000) {
      sched_yield();
    } else {
      usleep(1000);
    }
  }
}

// Returns whether this rank has begun a collective on MPI_COMM_WORLD and never completed it.  This is an error in the
// application, which most MPI libraries tolerate.  But if other ranks have not begun that collective, no later one on
// MPI_COMM_WORLD completes.
bool has_unfinished_collective() {
  const auto* const world = static_cast<const CommView*>(comms.find(bits(api.comm_world)));
  if (world == nullptr) return false;
  return requests.any([world](const Cell& maker, Payload payload) {
    const bool is_collective =
        (payload & RequestFlag::awaited) != 0 || std::strcmp(op_facts[op_of_key(maker.key)].klass, "collective") == 0;
    const bool is_active = (payload & RequestFlag::persistent) == 0 || (payload & RequestFlag::active) != 0;
    return is_collective && is_active && comm_of_key(maker.key) == world->index;
  });
}

// Returns whether all ranks are in MPI_Finalize, and each knows that the others are.  Some may be late or run without
// commlens.
//
// Waits for two barriers.  The first one also completes for a late rank if another rank has entered it and given up
// since.  A rank that has given up does not enter the second one, which therefore completes on no rank.  So either all
// ranks continue, or all give up.
Arrivals all_are_here() {
  if (job.size == 1) return Arrivals::all;
  if (has_unfinished_collective()) return Arrivals::through_files;
  const Arrivals first = all_are_present();
  return first == Arrivals::all ? all_are_present() : first;
}

Identity random_id() {
  Identity id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) id = combine(static_cast<Identity>(getpid()), now());
  return id;
}

// Collective: rank 0 chooses the random id of this world and sends it to all.
bool agree_on_world() {
  if (api.Comm_create(api.comm_world, job_groups.world, &own_comm) != MPI_SUCCESS) return false;
  api.Comm_set_errhandler(own_comm, api.errors_return);
  if (job.rank == 0) job.world_id = random_id();
  return api.Bcast(&job.world_id, sizeof job.world_id, api.byte, 0, own_comm) == MPI_SUCCESS;
}

// Returns false if no rank has collected, because some rank has a session open.
bool collect_all(Ticks begin) {
  if (!agree_on_world()) {
    collect_at_exit();  // the application may have used up all communicators
    return true;
  }
  World all;
  const Collected collected = collect_together(all, own_contribution_to_all(begin));
  if (collected == Collected::stored) remove_arena();
  return collected != Collected::too_early;
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
  const Ticks here = now();
  const Arrivals coming = all_are_here();
  job.waited = now() - here;
  begin += job.waited;  // waiting for late ranks is not our overhead
  switch (coming) {
    case Arrivals::late: collect_own(begin); return true;
    case Arrivals::through_files:
      if (job.sessions > 0) return false;  // sessions end later
      collect_at_exit();
      return true;
    case Arrivals::all: break;
  }
  say_if_launcher_disagrees();
  own_comm = api.comm_null;
  const bool done = collect_all(begin);
  if (own_comm != api.comm_null) api.Comm_free(&own_comm);
  return done;
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
  if (job.world_id == 0) job.world_id = job.size == 1 ? random_id() : id_of_launch();
  Contribution own = own_contribution(begin, own_destination());
  if (job.size == 1) {
    if (collect_alone(std::move(own), job.size)) remove_arena();
    return;
  }
  out::Parts parts = parts_of_job();
  OwnPart part = put_part(std::move(own), job.rank, job.size, parts);
  const bool is_there = part.is_there;
  if (is_there) remove_arena();
  if (merge_parts(std::move(part), parts) && !is_there) remove_arena();
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
}

}  // namespace commlens
