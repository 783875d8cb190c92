// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/collect/profile.h"
#include "core/out/files.h"

namespace commlens::out {

using Meta = std::vector<std::pair<std::string, std::string>>;

// What only all ranks together tell of a run.
struct Totals {
  Totals() = default;
  explicit Totals(const Profile& profile);
  Ns elapsed = 0;
  std::uint64_t ranks = 0;  // whose data there is
  Ns slice_ns = 1;
  bool slices_folded = false;
  bool is_summary = false;
  std::set<std::string> nodes;
  Profile::Oddities oddities;
};

// Adds to what `begin` says of a job of `ranks` processes what only all of their data tells.
Meta with_totals(Meta begin, const Totals& totals, int ranks);

// When the phases of collecting ended on the rank that writes; begin 0: not in a job.
struct Phases {
  Ticks begin = 0, collected = 0, gathered = 0, agreed = 0;
  Ticks (*clock)() = now;
};

// Builds the SQLite file in memory and writes it in one go under a temporary name, then gives it its own; an
// existing file is never replaced.  When `name` cannot be written, falls back to $TMPDIR or /tmp.
Stored store(const Profile& profile, const Meta& meta, const std::string& name, const Phases& phases,
             mode_t mode = usual_mode);

// One file of a profile that has several, as table shard has it.
struct Shard {
  std::uint64_t number = 0, first_rank = 0, ranks = 0, cells = 0, bytes = 0, crc32 = 0;
  std::string file;
  std::string error;  // empty: it is there
};

// Writes what the ranks of one block have, numbered as in the whole, and fills in `shard`.
bool store_shard(const Profile& profile, const Meta& meta, const std::string& directory, const Phases& phases,
                 mode_t mode, Shard& shard);

// Writes what all blocks have in common, and which there are.
Stored store_index(const Profile& profile, const Meta& meta, const std::vector<Shard>& shards,
                   const std::string& directory, mode_t mode);

}  // namespace commlens::out
