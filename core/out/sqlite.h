// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/out/files.h"
#include "core/profile/profile.h"

namespace commlens::out {

using Meta = std::vector<std::pair<std::string, std::string>>;

// The facts about a run that only the data of all ranks together give.
struct Totals {
  Totals() = default;
  explicit Totals(const Profile& profile);
  Ns elapsed = 0;
  std::uint64_t ranks = 0;  // number of ranks with data
  Ns app = 0, mpi = 0;      // sums over the ranks of their time since MPI_Init, and of the part in MPI
  Ns slice_ns = 1;
  bool slices_folded = false;
  bool is_summary = false;
  std::set<std::string> nodes;
  Profile::Oddities oddities;
};

// Returns `begin`, the facts about a job of `ranks` processes, with those of `totals` added.
Meta with_totals(Meta begin, const Totals& totals, int ranks);

// When the phases of collecting ended on the rank that writes.  begin 0: no phases are recorded, for example by
// `commlens recover`.
struct Phases {
  Ticks begin = 0, collected = 0, gathered = 0, agreed = 0;
  Ticks split = 0;  // duration: the part of agreeing in which the samples were split
  Ticks (*clock)() = now;
};

// Builds the SQLite file in memory, writes it in one go under a temporary name and renames it.  Never replaces an
// existing file.  If `name` cannot be written, falls back to $TMPDIR or /tmp.  Stores the first finding in `finding`,
// unless that is null: empty if there is none, or if the run was too short or has too many cells to look for one.
Stored store(const Profile& profile, const Meta& meta, const std::string& name, const Phases& phases,
             mode_t mode = usual_mode, std::string* finding = nullptr);

// One shard of a profile, as in table shard.
struct Shard {
  std::uint64_t number = 0, first_rank = 0, ranks = 0, cells = 0, bytes = 0, crc32 = 0;
  std::string file;
  std::string error;  // empty: the file was written
};

// Writes the shard of one block of ranks, with the numbers of the whole profile, and completes `shard`.
bool store_shard(const Profile& profile, const Meta& meta, const std::string& directory, const Phases& phases,
                 mode_t mode, Shard& shard);

// Writes the index: the rows that all shards share, and the list of shards.
Stored store_index(const Profile& profile, const Meta& meta, const std::vector<Shard>& shards,
                   const std::string& directory, mode_t mode);

}  // namespace commlens::out
