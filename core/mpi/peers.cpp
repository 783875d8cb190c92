// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/peers.h"

#include <mutex>
#include <numeric>
#include <vector>

#include "core/base/locks.h"
#include "core/hot/peer_cell.h"
#include "core/job/job.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/state.h"

namespace commlens {

namespace {

struct PeerGroup {
  MPI_Group group;  // peers are ranks in it; the caller frees it
  int rank;         // of this process in it; -1: in the other group of an intercommunicator
};

// Gets the group of a communicator by local MPI calls.  Returns nothing for a communicator that was freed, or that
// shares its record with others.
std::optional<PeerGroup> peer_group(std::uint32_t comm) noexcept {
  const PeersOf of = registry->peers_of(comm);
  if (!of.is_known || job_groups.world == MPI_Group{}) return std::nullopt;
  // Another thread may be freeing the communicator.  It first removes the handle from the map, with this lock held
  // (before_comm_free).
  const std::lock_guard<std::mutex> stay(locks::peers);
  const void* const known = comms.find(of.handle);
  if (known == nullptr || static_cast<const CommView*>(known)->index != comm) return std::nullopt;
  const MPI_Comm handle = of_bits<MPI_Comm>(of.handle);
  PeerGroup peers{MPI_Group{}, -1};
  if (!of.inter && api.Comm_rank(handle, &peers.rank) != MPI_SUCCESS) return std::nullopt;
  const int rc = of.inter ? api.Comm_remote_group(handle, &peers.group) : api.Comm_group(handle, &peers.group);
  return rc == MPI_SUCCESS ? std::optional<PeerGroup>(peers) : std::nullopt;
}

}  // namespace

std::int32_t world_rank(std::uint32_t comm, std::uint32_t peer) noexcept {
  std::optional<PeerGroup> peers = peer_group(comm);
  if (!peers) return world_not_known;
  const int theirs = static_cast<int>(peer);
  int world = MPI_UNDEFINED;
  const bool is_translated =
      api.Group_translate_ranks(peers->group, 1, &theirs, job_groups.world, &world) == MPI_SUCCESS;
  api.Group_free(&peers->group);
  if (!is_translated) return world_not_known;
  return world >= 0 ? world : of_another_world;
}

std::optional<MemberRanks> members(std::uint32_t comm) {
  std::optional<PeerGroup> peers = peer_group(comm);
  if (!peers) return std::nullopt;
  int size = 0;
  api.Group_size(peers->group, &size);
  std::vector<int> theirs(static_cast<std::size_t>(size));
  std::iota(theirs.begin(), theirs.end(), 0);
  MemberRanks found{comm, peers->rank, std::vector<std::int32_t>(theirs.size(), of_another_world)};
  api.Group_translate_ranks(peers->group, size, theirs.data(), job_groups.world, found.world.data());
  api.Group_free(&peers->group);
  for (std::int32_t& world : found.world) world = world >= 0 ? world : of_another_world;
  return found;
}

}  // namespace commlens
