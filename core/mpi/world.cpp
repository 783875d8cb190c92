// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/world.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/say.h"
#include "core/job/counting.h"
#include "core/job/job.h"
#include "core/job/selection.h"
#include "core/mpi/api.h"
#include "core/mpi/finalize_facts.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/state.h"

namespace commlens {
namespace {

constexpr int most_ranks = 32;             // each rank receives the values of all, in Open MPI by a message from each
constexpr std::size_t most_values = 1024;  // bytes of one rank
constexpr std::uint64_t most_gathered = std::uint64_t{4} << 20;  // bytes that rank 0 has room for
constexpr std::uint64_t no_room = most_gathered + 1;

// The MPI library may write to them after this rank has given up waiting.  Only the parts that are used take memory.
struct Buffers {
  alignas(8) char own[most_values];
  alignas(8) char all[most_ranks * most_values];
  std::uint64_t own_size;
  std::uint64_t sizes[most_ranks];
  int counts[most_ranks], starts[most_ranks];
  char answer;
};
Buffers buffers;

// Gives the processor to other processes, because they may need it to arrive: a process that waits without doing so
// keeps it for a whole time slice.  After a while sleeps, for a small part of the time waited so far.
void let_others_run(unsigned long tries) {
  constexpr unsigned long yields = 1000, shortest_us = 50, longest_us = 1000;
  if (tries < yields) {
    sched_yield();
  } else {
    usleep(static_cast<useconds_t>(std::clamp((tries - yields) / 8, shortest_us, longest_us)));
  }
}

// Waits for a request that all ranks are sure to complete.
bool completes(MPI_Request request) {
  int done = 0;
  for (unsigned long tries = 0; api.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS; ++tries) {
    if (done != 0) return true;
    let_others_run(tries);
  }
  return false;
}

// The same for a message to or from one rank.  Never sleeps: a rank that serves many others one after the other would
// wait for each of them to wake up.
bool is_passed(MPI_Request request) {
  int done = 0;
  while (api.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
    if (done != 0) return true;
    sched_yield();
  }
  return false;
}

// Waits for a collective operation that all ranks have to begin.  It does not block, so that unprofiled ranks are not
// disturbed and this rank can give up.
Arrivals completes_for_all(MPI_Request request) {
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
    if (api.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return Arrivals::late;
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
    let_others_run(tries);
  }
}

Arrivals all_are_present() {
  MPI_Request barrier;
  return api.Ibarrier(api.comm_world, &barrier) == MPI_SUCCESS ? completes_for_all(barrier) : Arrivals::late;
}

// Passes a message in pieces, because MPI counts are int.
template <class Begin>
bool pieces(std::size_t size, Begin begin) {
  constexpr std::size_t limit = std::size_t{1} << 30;
  for (std::size_t at = 0; at < size; at += limit) {
    MPI_Request request;
    if (begin(at, static_cast<int>(std::min(limit, size - at)), &request) != MPI_SUCCESS || !is_passed(request))
      return false;
  }
  return true;
}

constexpr int message_tag = 1;

}  // namespace

World::~World() {
  if (is_connected_ && job.size > 1) api.Comm_free(&own_comm_);
}

int World::rank() const { return job.rank; }
int World::size() const { return job.size; }
bool World::is_small() const { return job.size <= most_ranks; }

bool World::connect() {
  if (is_connected_ || job.size == 1) return true;
  if (api.Comm_create(api.comm_world, job_groups.world, &own_comm_) != MPI_SUCCESS) return false;
  is_connected_ = true;
  api.Comm_set_errhandler(own_comm_, api.errors_return);
  return true;
}

bool World::send(int to, const void* bytes, std::size_t size) {
  return pieces(size, [&](std::size_t at, int n, MPI_Request* request) {
    return api.Isend(static_cast<const char*>(bytes) + at, n, api.byte, to, message_tag, own_comm_, request);
  });
}

bool World::receive(int from, void* bytes, std::size_t size) {
  return pieces(size, [&](std::size_t at, int n, MPI_Request* request) {
    return api.Irecv(static_cast<char*>(bytes) + at, n, api.byte, from, message_tag, own_comm_, request);
  });
}

// A rank may be late or run without commlens.  So two operations follow each other, and this rank may give up waiting
// for each of them.  The first one, a barrier, also completes for a late rank if another rank has begun it and given up
// since.  A rank that has given up does not begin the second one, which therefore completes on no rank.  So either all
// ranks continue, or all give up.  This rank begins the second one immediately after the first: a rank with other work
// in between could lose the others, which give up, and then wait for them.
CollectiveResult World::arrive(const void* own, std::size_t size, const char*& all) {
  arrivals_ = all_are_present();
  waited_ = now() - begin_;  // the rest is our own cost
  if (arrivals_ != Arrivals::all) return CollectiveResult::broken;
  if (!is_small() || size > most_values) {
    arrivals_ = all_are_present();
    return arrivals_ == Arrivals::all ? CollectiveResult::no : CollectiveResult::broken;
  }
  std::memcpy(buffers.own, own, size);
  MPI_Request request;
  const auto bytes = static_cast<int>(size);
  arrivals_ = api.Iallgather(buffers.own, bytes, api.byte, buffers.all, bytes, api.byte, api.comm_world, &request) ==
                      MPI_SUCCESS
                  ? completes_for_all(request)
                  : Arrivals::late;
  all = buffers.all;
  return arrivals_ == Arrivals::all ? CollectiveResult::yes : CollectiveResult::broken;
}

CollectiveResult World::exchange(const void* own, std::size_t size, const char*& all) {
  if (job.size == 1) {
    all = static_cast<const char*>(own);
    return CollectiveResult::yes;
  }
  begin_ = now();
  const CollectiveResult outcome = arrive(own, size, all);
  if (outcome == CollectiveResult::broken) waited_ = now() - begin_;
  return outcome;
}

// All ranks learn the sizes of all, and so decide in the same way.
CollectiveResult World::gather(std::vector<char>& own) {
  if (!is_small() || job.size == 1) return CollectiveResult::no;
  buffers.own_size = own.size();
  if (job.rank == 0) {
    room_.reset(new (std::nothrow) char[most_gathered]);
    if (room_ == nullptr) buffers.own_size = no_room;
  }
  constexpr int word = sizeof buffers.own_size;
  MPI_Request request;
  if (api.Iallgather(&buffers.own_size, word, api.byte, buffers.sizes, word, api.byte, api.comm_world, &request) !=
          MPI_SUCCESS ||
      !completes(request))
    return CollectiveResult::broken;
  std::uint64_t sum = 0;
  for (int rank = 0; rank < job.size; ++rank) {
    if (buffers.sizes[rank] > most_gathered - sum) return CollectiveResult::no;
    buffers.counts[rank] = static_cast<int>(buffers.sizes[rank]);
    buffers.starts[rank] = static_cast<int>(sum);
    sum += buffers.sizes[rank];
  }
  if (api.Igatherv(own.data(), static_cast<int>(own.size()), api.byte, room_.get(), buffers.counts, buffers.starts,
                   api.byte, 0, api.comm_world, &request) != MPI_SUCCESS)
    return CollectiveResult::broken;
  if (completes(request)) return CollectiveResult::yes;
  // MPI may still read from and write to this memory, so it is never freed.
  static_cast<void>(room_.release());
  static_cast<void>(new (std::nothrow) std::vector<char>(std::move(own)));
  return CollectiveResult::broken;
}

std::string_view World::gathered(int rank) const {
  return {room_.get() + buffers.starts[rank], static_cast<std::size_t>(buffers.counts[rank])};
}

bool World::broadcast(char& answer) {
  buffers.answer = answer;
  MPI_Request request;
  if (api.Ibcast(&buffers.answer, 1, api.byte, 0, api.comm_world, &request) != MPI_SUCCESS || !completes(request))
    return false;
  answer = buffers.answer;
  return true;
}

}  // namespace commlens
