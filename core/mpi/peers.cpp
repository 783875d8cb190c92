// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/peers.h"

#include <mutex>
#include <numeric>
#include <vector>

#include "core/cold/locks.h"
#include "core/hot/peer_cell.h"
#include "core/mpi/job.h"
#include "core/mpi/state.h"

namespace commlens {

// Asks MPI, without talking to anybody.  Of a communicator that is freed by now, and of those that share a record,
// nobody can tell.
std::int32_t world_rank(std::uint32_t comm, std::uint32_t peer) noexcept {
  const PeersOf of = registry->peers_of(comm);
  if (!of.is_known || job.group == MPI_Group{}) return world_not_known;
  // Another thread may be freeing it: it takes it out of the map first, with the lock (comm_going).
  std::unique_lock<std::mutex> lock(locks::peers);
  const void* const known = comms.find(of.handle);
  if (known == nullptr || static_cast<const CommView*>(known)->index != comm) return world_not_known;
  MPI_Group group;
  const MPI_Comm handle = of_bits<MPI_Comm>(of.handle);
  if ((of.inter ? api.Comm_remote_group(handle, &group) : api.Comm_group(handle, &group)) != MPI_SUCCESS)
    return world_not_known;
  lock.unlock();
  const int theirs = static_cast<int>(peer);
  int world = MPI_UNDEFINED;
  const bool is_told = api.Group_translate_ranks(group, 1, &theirs, job.group, &world) == MPI_SUCCESS;
  api.Group_free(&group);
  if (!is_told) return world_not_known;
  return world >= 0 ? world : of_another_world;
}

std::optional<Members> members(std::uint32_t comm) {
  const PeersOf of = registry->peers_of(comm);
  if (!of.is_known || job.group == MPI_Group{}) return std::nullopt;
  MPI_Group group;
  const MPI_Comm handle = of_bits<MPI_Comm>(of.handle);
  Members found{comm, -1, {}};
  if (!of.inter) api.Comm_rank(handle, &found.rank);
  if ((of.inter ? api.Comm_remote_group(handle, &group) : api.Comm_group(handle, &group)) != MPI_SUCCESS)
    return std::nullopt;
  int size = 0;
  api.Group_size(group, &size);
  std::vector<int> theirs(static_cast<std::size_t>(size));
  std::iota(theirs.begin(), theirs.end(), 0);
  found.world.assign(theirs.size(), of_another_world);
  api.Group_translate_ranks(group, size, theirs.data(), job.group, found.world.data());
  api.Group_free(&group);
  for (std::int32_t& world : found.world) world = world >= 0 ? world : of_another_world;
  return found;
}

}  // namespace commlens
