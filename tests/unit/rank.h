// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/profile/profile.h"
#include "core/state/registry.h"

namespace commlens {

// Lets a process of its own be world rank `rank`, and returns what it packed.  A process, because the tables of all
// threads are found through it.  Its clock counts nanoseconds.
// coverage: what it imports, as written() by core/process/coverage.h.
std::vector<char> packed_by_rank(int rank, const std::function<void(Registry&)>& life,
                                 const std::string& coverage = std::string(1, '\0'));

// The identity of MPI_COMM_WORLD in these tests, and the index it gets when it is added first: 0 and 1 are the
// registry's own.
inline constexpr Identity world_identity = 1000;
inline constexpr std::uint32_t world = 2;

// The identity in the profile of what has `identity` in its world.
Identity told(Identity identity);

// Adds the world as `rank` of `size` sees it; before all others.
void add_world(Registry& registry, int rank, int size);

// What the tests vary of a communicator; the rest follows from `members`, world ranks in the order of its ranks.
struct Made {
  Identity identity;
  char letter;
  std::vector<int> members;
  Site site = 0;
  std::uint32_t parent = world;
};

// Adds the communicator as `rank` sees it and returns its index.
std::uint32_t add_comm(Registry& registry, int rank, const Made& made);

// Counts `n` calls of `spent` nanoseconds each in the calling thread.
void count(std::uint32_t comm, std::uint32_t op, int n, Ticks spent = 10, std::uint64_t sent = 0, Site site = 0);

// What several ranks sent, merged.
Profile merged(const std::vector<std::vector<char>>& packages);

// The communicator with this name, or null.
const Profile::Comm* comm_named(const Profile& profile, const std::string& name);

// Calls in all rows of the profile that belong to this communicator; `rank` -1: of all ranks.
std::uint64_t calls_in(const Profile& profile, const std::string& name, int rank = -1);

}  // namespace commlens
