// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "core/out/database.h"
#include "core/out/gap.h"
#include "core/out/sqlite.h"
#include "core/profile/profile.h"

// Turns the data of a profile into the rows of its tables.
namespace commlens::out {

// Which part of a profile a file contains.
enum class Part { whole, shard, index };

// Returns the id of a key.  The ids of keys are `world_size` apart, so that the row of a rank has the id of its key
// plus the rank.  A table ordered by one number is smaller, and written faster, than one ordered by two.
inline std::int64_t id_of(const Profile& profile, std::size_t key) {
  return static_cast<std::int64_t>(key) * std::max(profile.world_size, 1);
}

// Returns a size bin as the profile stores it.
inline std::int64_t stored_bin(std::uint32_t bin) {
  if (bin == v_bin) return -1;
  return bin == null_bin ? -2 : static_cast<std::int64_t>(bin);
}

// Fill the tables that all ranks share: names, communicators, keys.  A shard gets only the rows that its ranks use.
void fill_shared(Database& db, const Profile& profile, const Meta& meta, Part part);

// Fill the tables with rows per rank: of counters, of regions, of the communication matrix, of threads.
void fill_ranks(Database& db, const Profile& profile, const Phases& phases, Gap& gap);
void fill_regions(Database& db, const Profile& profile);
void fill_peers(Database& db, const Profile& profile);
void fill_threads(Database& db, const Profile& profile);
void fill_untimed(Database& db, const Profile& profile);

// Fill the tables about waiting in collectives: with rows per rank, and with rows per kind of call.
void fill_waiting(Database& db, const Profile& profile);
void fill_sampled(Database& db, const Profile& profile);

// Fills the list of procedures: those that rows of the file refer to.
void fill_ops(Database& db, const Profile& profile, Part part);

// Fill the tables about datatypes: the datatypes, and the calls of each rank.
void fill_datatypes(Database& db, const Profile& profile, Part part);
void fill_datatype_uses(Database& db, const Profile& profile);

// Fills the distributions of a summary.
void fill_scopes(Database& db, const Profile& profile);

// Fills the list of shards.
void fill_shards(Database& db, const std::vector<Shard>& shards);

}  // namespace commlens::out
