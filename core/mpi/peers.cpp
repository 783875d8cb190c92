// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/peers.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
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

int world_rank_in(MPI_Group group, int rank) noexcept {
  int world = MPI_UNDEFINED;
  api.Group_translate_ranks(group, 1, &rank, job_groups.world, &world);
  return world;
}

// Translates ranks from `first` on, if they are `world`, `world + stride`, ... there.  Returns how many are.
int translate_guessed(MPI_Group group, int first, int world, int stride, int n, int world_size, std::int32_t* found) {
  constexpr int most = 64;
  int ranks[most], guesses[most], positions[most], right = 0;
  int wanted = 0;
  for (; wanted < std::min(n, most); ++wanted) {
    const std::int64_t guess = world + std::int64_t{stride} * wanted;
    if (guess < 0 || guess >= world_size) break;
    ranks[wanted] = first + wanted;
    guesses[wanted] = static_cast<int>(guess);
  }
  MPI_Group likely{};
  if (wanted == 0 || api.Group_incl(job_groups.world, wanted, guesses, &likely) != MPI_SUCCESS) return 0;
  if (api.Group_translate_ranks(group, wanted, ranks, likely, positions) == MPI_SUCCESS) {
    for (; right < wanted && positions[right] == right; ++right) found[first + right] = guesses[right];
  }
  api.Group_free(&likely);
  return right;
}

// Open MPI searches the whole second group for each rank: that is quadratic in the processes.  Most communicators
// contain every n-th process of the job, so a small group of the expected ones is asked first.
void translate_all(MPI_Group group, std::vector<std::int32_t>& found) {
  const int size = static_cast<int>(found.size());
  int world_size = 0, stride = 1, last = -1, n = 1;
  api.Group_size(job_groups.world, &world_size);
  for (int at = 0; at < size;) {
    const int right =
        translate_guessed(group, at, last + stride, stride, std::min(n, size - at), world_size, found.data());
    at += right;
    if (right > 0) last = found[static_cast<std::size_t>(at - 1)];
    if (right == n || at == size) {
      n = std::min(2 * n, 64);
      continue;
    }
    const int world = world_rank_in(group, at);
    n = 1;
    if (world >= 0) {
      if (last >= 0) stride = world - last;
      last = world;
      found[static_cast<std::size_t>(at)] = world;
    }
    ++at;
  }
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
  MemberRanks found{comm, peers->rank, std::vector<std::int32_t>(static_cast<std::size_t>(size), of_another_world)};
  translate_all(peers->group, found.world);
  api.Group_free(&peers->group);
  return found;
}

}  // namespace commlens
