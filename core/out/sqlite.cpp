// SPDX-License-Identifier: Apache-2.0
#include "core/out/sqlite.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "core/base/blocked_signal.h"
#include "core/out/database.h"
#include "core/out/findings.h"
#include "core/out/gap.h"
#include "core/out/output_name.h"
#include "core/out/tables.h"
#include "generated/findings.h"
#include "generated/schema_sql.h"

namespace commlens::out {

Totals::Totals(const Profile& profile)
    : ranks(profile.ranks.size()),
      slice_ns(profile.slice_ns),
      slices_folded(profile.slices_folded),
      is_summary(profile.is_summary),
      oddities(profile.oddities) {
  for (const Profile::Rank& r : profile.ranks) {
    elapsed = std::max(elapsed, r.facts.app_ns);
    app += r.facts.app_ns;
    mpi += r.mpi_ns;
    nodes.insert(r.facts.node);
  }
}

Meta with_totals(Meta begin, const Totals& totals, int ranks) {
  begin.emplace_back("schema_version", std::to_string(schema_version));
  begin.emplace_back("elapsed_ns", std::to_string(totals.elapsed));
  begin.emplace_back("ranks", std::to_string(ranks));
  begin.emplace_back("ranks_collected", std::to_string(totals.ranks));
  begin.emplace_back("slice_ns", std::to_string(totals.slice_ns));
  begin.emplace_back("slice_of", totals.slices_folded ? "family" : "communicator");
  begin.emplace_back("nodes", std::to_string(totals.nodes.size()));
  begin.emplace_back("detail", totals.is_summary ? "summary" : "full");
  const auto full = totals.oddities.find(Notice::paths);
  begin.emplace_back("full_paths", std::to_string(full == totals.oddities.end() ? 0 : full->second.ranks));
  for (const char* const empty : {"shard", "open_calls"}) begin.emplace_back(empty, "");
  return begin;
}

namespace {

// The bytes of a file.
struct Image {
  std::vector<unsigned char> bytes;
  std::string error;  // empty: none
  Content content() const { return {bytes.data(), bytes.size()}; }
};

// Builds one file of a profile.  Each table takes a page even if it is empty, so files that are small have small pages.
// They have no comments in their schema either: `commlens schema` shows them.  The index has them for all shards, which
// have no views.
template <class Fill>
Image built(Part part, Fill fill) {
  constexpr std::size_t kibibyte = 1024, small = 100 * kibibyte, large = 1024 * kibibyte;
  Database db;
  fill(db);
  const std::size_t bytes = db.bytes();
  const std::size_t page_size = bytes < small ? 512 : bytes < large ? 1024 : 4096;
  const bool has_comments = part == Part::index || (part == Part::whole && bytes >= large);
  Image image{db.image(page_size, {has_comments, part != Part::shard}), {}};
  if (!db.ok()) image.error = "cannot build the profile: " + db.error();
  return image;
}

// Returns whether to look for findings while the job waits: not if no rule can apply, nor if that takes long.
bool is_worth_a_search(const Profile& profile) {
  if (profile.is_summary || profile.ranks.size() < 2 || profile.rows.size() > most_cells_searched) return false;
  return Totals(profile).elapsed >= static_cast<Ns>(shortest_run_with_findings_ns);
}

// The CRC-32 that zlib computes, so that readers can check it.
std::uint32_t crc32(const unsigned char* bytes, std::size_t size) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < t.size(); ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t i = 0; i < size; ++i) crc = table[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace

bool store_shard(const Profile& profile, const Meta& meta, const std::string& directory, const Phases& phases,
                 mode_t mode, Shard& shard) {
  Meta own = meta;
  for (auto& [key, value] : own) {
    if (key == "shard") value = std::to_string(shard.number);
  }
  Gap gap(phases.clock);
  Image image = built(Part::shard, [&](Database& db) {
    fill_shared(db, profile, own, Part::shard);
    fill_ranks(db, profile, phases, gap);
    fill_regions(db, profile);
    fill_threads(db, profile);
    fill_untimed(db, profile);
    fill_peers(db, profile);
    fill_waiting(db, profile);
  });
  const BlockedSignal file_size_limit(SIGXFSZ);
  Stored stored{"", image.error};
  if (image.error.empty()) {
    gap.find(image.bytes.data(), image.bytes.size());
    const std::string name = "shard." + std::to_string(shard.number) + ".db";
    stored = write_part(image.content(), directory, name, mode, gap.filling());
  }
  shard.error = stored.error;
  shard.file = base_name(stored.path);
  shard.ranks = profile.ranks.size();
  shard.cells = profile.rows.size();
  shard.bytes = image.bytes.size();
  if (stored.path.empty()) return false;
  shard.crc32 = crc32(image.bytes.data(), image.bytes.size());
  return true;
}

Stored store_index(const Profile& profile, const Meta& meta, const std::vector<Shard>& shards,
                   const std::string& directory, mode_t mode) {
  const Image image = built(Part::index, [&](Database& db) {
    fill_shared(db, profile, meta, Part::index);
    fill_sampled(db, profile);
    fill_shards(db, shards);
  });
  if (!image.error.empty()) return {"", image.error};
  const BlockedSignal file_size_limit(SIGXFSZ);
  return write_part(image.content(), directory, "index.db", mode, nullptr);
}

Stored store(const Profile& profile, const Meta& meta, const std::string& name, const Phases& phases, mode_t mode,
             std::string* finding) {
  Gap gap(phases.clock);
  Image image = built(Part::whole, [&](Database& db) {
    fill_shared(db, profile, meta, Part::whole);
    fill_ranks(db, profile, phases, gap);
    fill_regions(db, profile);
    fill_threads(db, profile);
    fill_untimed(db, profile);
    fill_peers(db, profile);
    fill_waiting(db, profile);
    fill_sampled(db, profile);
    fill_scopes(db, profile);
  });
  if (!image.error.empty()) return {"", image.error};
  const BlockedSignal file_size_limit(SIGXFSZ);
  gap.find(image.bytes.data(), image.bytes.size());
  Stored result = write_file(image.content(), name, mode, gap.filling());
  if (result.path.empty()) {
    const Stored second = write_file(image.content(), name_elsewhere(name), mode, gap.filling());
    if (second.path.empty()) {
      result.error += "; " + second.error;
    } else {
      result.path = second.path;
    }
  }
  try {
    if (finding != nullptr && is_worth_a_search(profile)) *finding = first_finding(image.bytes);
  } catch (const std::exception&) {
    return result;  // no memory for the search: the profile is stored all the same
  }
  return result;
}

}  // namespace commlens::out
