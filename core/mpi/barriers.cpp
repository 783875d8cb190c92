// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/barriers.h"

#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/hot/thread.h"
#include "core/mpi/own_errors.h"
#include "core/mpi/state.h"
#include "core/state/samples.h"

namespace commlens {

void* behind_barriers[2 * slot_count];

namespace {

thread_local bool is_meeting = false;

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
// By index of the application's communicator; MPI_COMM_NULL: no barrier.
std::unordered_map<std::uint32_t, MPI_Comm>& own_comms() {
  static auto* const made = new std::unordered_map<std::uint32_t, MPI_Comm>();  // never destroyed
  return *made;
}

// Returns whether all members are in MPI_COMM_WORLD.  All members find the same.
bool is_within_world(MPI_Group group, int size) {
  MPI_Group world;
  if (api.Comm_group(api.comm_world, &world) != MPI_SUCCESS) return false;
  std::vector<int> ranks(static_cast<std::size_t>(size)), found(ranks.size());
  for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
  const bool is_known = api.Group_translate_ranks(group, size, ranks.data(), world, found.data()) == MPI_SUCCESS;
  api.Group_free(&world);
  for (const int r : found) {
    if (r == MPI_UNDEFINED) return false;
  }
  return is_known;
}

// Collective over the members.  Returns a communicator with the same members, or MPI_COMM_NULL.
MPI_Comm create(MPI_Comm comm, const CommView& view) {
  constexpr Identity largest_tag = 32767;  // which every MPI library allows
  MPI_Comm own = api.comm_null;
  MPI_Group group;
  if (api.Comm_group(comm, &group) != MPI_SUCCESS) return own;
  const auto tag = static_cast<int>(view.identity & largest_tag);
  const OwnErrors own_errors;
  const bool is_made =
      is_within_world(group, view.size) && functions().create(api.comm_world, group, tag, &own) == MPI_SUCCESS;
  api.Group_free(&group);
  if (!is_made) return api.comm_null;
  api.Comm_set_errhandler(own, api.errors_return);
  return own;
}

MPI_Comm own_comm(MPI_Comm comm, const CommView& view) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = own_comms().find(view.index);
    if (found != own_comms().end()) return found->second;
  }
  MPI_Comm const own = create(comm, view);
  const std::lock_guard<std::mutex> lock(mutex);
  own_comms()[view.index] = own;
  if (own != api.comm_null) note_barriers(view.index);
  return own;
}

}  // namespace

Meeting::Meeting(Op op, MPI_Comm comm) noexcept try {
  const Thread& thread = this_thread();
  if (is_meeting || thread.outermost == nullptr || thread.current.op != op) return;
  const auto* const view = static_cast<const CommView*>(comms.find(bits(comm)));
  const bool has_world = comms.find(bits(api.comm_world)) != nullptr;  // not with sessions only
  if (view == nullptr || view->inter || view->size < 2 || !has_world || !functions().are_here()) return;
  is_outermost_ = is_meeting = true;
  MPI_Comm const own = own_comm(comm, *view);
  if (own != api.comm_null) functions().barrier(own);
} catch (const std::bad_alloc&) {  // the other members wait in the barrier, but this process has no memory left
}

Meeting::~Meeting() {
  if (is_outermost_) is_meeting = false;
}

void free_barrier(const CommView& comm) noexcept {
  MPI_Comm own = api.comm_null;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = own_comms().find(comm.index);
    if (found == own_comms().end()) return;
    own = found->second;
    own_comms().erase(found);
  }
  if (own != api.comm_null) api.Comm_free(&own);
}

}  // namespace commlens
