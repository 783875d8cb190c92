// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/barriers.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "core/base/say.h"
#include "core/hot/thread.h"
#include "core/mpi/state.h"
#include "core/state/samples.h"

namespace commlens {

void* behind_barriers[2 * slot_count];

namespace {

// The outermost call for which this thread last waited in a barrier: its frame, and when it began.  The latter tells it
// from a call that an exception or longjmp has left.
struct LastBarrier {
  const char* frame;
  Ticks since;
};
thread_local LastBarrier last_barrier{};

struct Functions {
  decltype(&PMPI_Barrier) barrier = library<decltype(&PMPI_Barrier)>("PMPI_Barrier");
  decltype(&PMPI_Comm_create_group) create = library<decltype(&PMPI_Comm_create_group)>("PMPI_Comm_create_group");

  bool are_here() const noexcept { return barrier != nullptr && create != nullptr; }
};
const Functions& functions() noexcept {
  static const Functions found;
  return found;
}

std::mutex mutex;
// By the bits of the application's handle; MPI_COMM_NULL: no barrier.
std::unordered_map<std::uint64_t, MPI_Comm>& own_comms() {
  static auto* const made = new std::unordered_map<std::uint64_t, MPI_Comm>();  // never destroyed
  return *made;
}

// Returns whether all members are in MPI_COMM_WORLD.  All members find the same.
bool is_within_world(MPI_Group group, int size) {
  MPI_Group world;
  if (api.Comm_group(api.comm_world, &world) != MPI_SUCCESS) return false;
  std::vector<int> ranks(static_cast<std::size_t>(size)), found(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const bool is_known = api.Group_translate_ranks(group, size, ranks.data(), world, found.data()) == MPI_SUCCESS;
  api.Group_free(&world);
  return is_known && std::find(found.begin(), found.end(), MPI_UNDEFINED) == found.end();
}

// Collective over the members.  Returns a communicator with the same members, or MPI_COMM_NULL.  Asks MPI and not the
// registry, so that all members decide alike, whatever they know of the communicator.
MPI_Comm create(MPI_Comm comm) {
  constexpr Identity largest_tag = 32767;  // which every MPI library allows
  MPI_Comm own = api.comm_null;
  int is_inter = 0, size = 0;
  MPI_Group group;
  if (api.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter != 0) return own;
  if (api.Comm_size(comm, &size) != MPI_SUCCESS || size < 2) return own;
  if (api.Comm_group(comm, &group) != MPI_SUCCESS) return own;
  const auto tag = static_cast<int>(mixed(static_cast<Identity>(size)) & largest_tag);
  const bool is_made =
      is_within_world(group, size) && functions().create(api.comm_world, group, tag, &own) == MPI_SUCCESS;
  api.Group_free(&group);
  return is_made ? own : api.comm_null;
}

MPI_Comm own_comm(MPI_Comm comm) {
  MPI_Comm* place = nullptr;  // an entry of the map does not move
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [found, is_new] = own_comms().try_emplace(bits(comm), api.comm_null);
    if (!is_new) return found->second;
    place = &found->second;
  }
  MPI_Comm const own = create(comm);
  const std::lock_guard<std::mutex> lock(mutex);
  return *place = own;
}

// Returns false without memory: then the others wait in vain.
bool wait_for_all(MPI_Comm comm) noexcept try {
  MPI_Comm const own = own_comm(comm);
  if (own == api.comm_null) return true;
  if (const auto* const view = static_cast<const CommView*>(comms.find(bits(comm)))) note_barriers(view->index);
  return functions().barrier(own) == MPI_SUCCESS;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void wait_in_barrier(Op op, MPI_Comm comm) noexcept {
  const Thread& thread = this_thread();
  const CurrentCall& call = thread.current;
  if (thread.outermost == nullptr || call.op != op) return;
  if (last_barrier.frame == thread.outermost && last_barrier.since == call.since) return;
  last_barrier = {thread.outermost, call.since};
  const bool has_world = comms.find(bits(api.comm_world)) != nullptr;  // not with sessions only
  if (comm != api.comm_null && has_world && functions().are_here() && !wait_for_all(comm))
    say("no memory for a barrier (COMMLENS_WAITING=barrier): the other ranks may wait for ever");
}

void free_barrier(MPI_Comm comm) noexcept {
  MPI_Comm own = api.comm_null;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = own_comms().find(bits(comm));
    if (found == own_comms().end()) return;
    own = found->second;
    own_comms().erase(found);
  }
  if (own != api.comm_null) api.Comm_free(&own);
}

}  // namespace commlens
