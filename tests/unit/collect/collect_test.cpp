// SPDX-License-Identifier: Apache-2.0
// Whole jobs whose processes are threads: what is in the files must not depend on how many write them.
#include "core/collect/collect.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "core/collect/agree.h"
#include "core/collect/package.h"
#include "core/collect/profile.h"
#include "tests/unit/check.h"
#include "tests/unit/collect/crowd.h"
#include "tests/unit/collect/virtual_job.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

class Place {
 public:
  Place() {
    char path[] = "/tmp/commlens-collect-XXXXXX";
    root = mkdtemp(path) != nullptr ? path : "/nonexistent";
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  fs::path root;
};

// Runs a job to its end; returns how many ranks know their data in a profile.
int collected(const VirtualJob& job, const fs::path& name, unsigned long aggregators) {
  std::mutex mutex;
  int stored = 0;
  Crowd(job.ranks).run([&](Crowd::Member& member) {
    std::deque<CommRecord> records;
    Terms terms;
    terms.counted = [&] { return job.counted(member.rank(), records); };
    terms.meta = [] { return out::Meta{{"program", "virtual"}}; };
    terms.name = [&] { return name.string(); };
    terms.aggregators = aggregators;
    terms.quiet = true;
    const Collected result = collect_together(member, terms);
    const std::lock_guard<std::mutex> lock(mutex);
    stored += result == Collected::stored ? 1 : 0;
  });
  return stored;
}

// The rows of a query, columns joined by '|'.
std::vector<std::string> asked(const fs::path& path, const std::string& sql) {
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  std::vector<std::string> rows;
  if (sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK ||
      sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    rows.push_back(sqlite3_errmsg(db));
  }
  while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const unsigned char* const value = sqlite3_column_text(statement, i);
      row += (i == 0 ? "" : "|") + std::string(value == nullptr ? "-" : reinterpret_cast<const char*>(value));
    }
    rows.push_back(row);
  }
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return rows;
}

const char dictionary_sql[] =
    "SELECT 'comm', id, hash, name, parent, creator, callsite, size, leader, members, created_ns, family FROM comm "
    "UNION ALL SELECT 'key', id, comm, op, bin, region, callsite, 0, 0, 0, 0, 0 FROM key "
    "UNION ALL SELECT 'site', id, module, build_id, offset, 0, 0, 0, 0, 0, 0, 0 FROM callsite "
    "UNION ALL SELECT 'coverage', symbol, object, ranks, 0, 0, 0, 0, 0, 0, 0, 0 FROM coverage "
    "UNION ALL SELECT 'meta', key, value, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM meta "
    " WHERE key IN ('ranks', 'ranks_collected', 'elapsed_ns', 'nodes', 'slice_ns', 'slice_of', 'program')";
const char rows_sql[] =
    "SELECT 'cell', key.id, r.id - key.id, key.usual_calls + r.calls, time_ns, time_min_ns, time_max_ns, "
    "       key.usual_sent + r.bytes_sent, key.usual_received + r.bytes_received "
    "  FROM key JOIN cell_row AS r "
    "    ON r.id BETWEEN key.id AND key.id + (SELECT CAST(value AS INTEGER) FROM meta WHERE meta.key = 'ranks') - 1 "
    "UNION ALL SELECT 'rank', rank, node, pid, app_ns, mpi_ns, calls, threads, state FROM rank "
    "UNION ALL SELECT 'slice', comm, op, rank, slot, calls, time_ns, bytes_sent, bytes_received FROM slice "
    "UNION ALL SELECT 'overhead', rank, what, 0, 0, 0, 0, 0, 0 FROM overhead WHERE what IN ('init', 'call')";

std::multiset<std::string> rows_of(const std::vector<fs::path>& files) {
  std::multiset<std::string> rows;
  for (const fs::path& file : files) {
    for (std::string& row : asked(file, rows_sql)) rows.insert(std::move(row));
  }
  return rows;
}

std::vector<fs::path> shards_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind("shard.", 0) == 0) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST(the_same_rows_and_numbers_come_out_however_many_ranks_write) {
  for (const int ranks : {2, 3, 7, 16, 33}) {
    const Place place;
    VirtualJob job;
    job.ranks = ranks;
    job.slices = 5;
    CHECK_EQ(collected(job, place.root / "one.db", 1), ranks);
    const std::multiset<std::string> rows = rows_of({place.root / "one.db"});
    const std::vector<std::string> dictionary = asked(place.root / "one.db", dictionary_sql);
    const std::size_t comms = static_cast<std::size_t>(1 + job.duplicates + 2 + 1);
    CHECK(rows.size() > static_cast<std::size_t>(ranks) * comms * 4);
    for (const int aggregators : {2, 3, 5, ranks}) {
      if (aggregators > ranks) continue;
      const std::string name = "many" + std::to_string(aggregators);
      CHECK_EQ(collected(job, place.root / (name + ".db"), static_cast<unsigned long>(aggregators)), ranks);
      const fs::path directory = place.root / (name + ".commlens");
      const int block = block_size(ranks, static_cast<unsigned long>(aggregators), 0);
      CHECK_EQ(shards_in(directory).size(), static_cast<std::size_t>((ranks + block - 1) / block));
      CHECK(rows_of(shards_in(directory)) == rows);
      const std::vector<std::string> found = asked(directory / "index.db", dictionary_sql);
      CHECK_EQ(found.size(), dictionary.size());
      for (std::size_t i = 0; i < std::min(found.size(), dictionary.size()); ++i) CHECK_EQ(found[i], dictionary[i]);
      CHECK_EQ(asked(directory / "index.db", "SELECT SUM(ranks), SUM(cells) FROM shard")[0],
               std::to_string(ranks) + "|" + asked(place.root / "one.db", "SELECT COUNT(*) FROM cell_row")[0]);
    }
  }
}

TEST(a_shard_names_all_that_its_rows_refer_to) {
  const Place place;
  VirtualJob job;
  job.ranks = 12;
  job.slices = 2;
  collected(job, place.root / "a.db", 4);
  for (const fs::path& shard : shards_in(place.root / "a.commlens")) {
    CHECK_EQ(asked(shard,
                   "SELECT COUNT(*) FROM cell_row AS r LEFT JOIN key ON key.id = r.id / 12 * 12 LEFT JOIN comm ON "
                   "comm.id = key.comm "
                   "LEFT JOIN callsite ON callsite.id = key.callsite LEFT JOIN rank ON rank.rank = r.id % 12 "
                   "WHERE comm.id IS NULL OR callsite.id IS NULL OR rank.rank IS NULL")[0],
             std::string("0"));
    CHECK_EQ(asked(shard, "SELECT COUNT(*) FROM slice LEFT JOIN comm ON comm.id = slice.comm WHERE comm.id IS NULL")[0],
             std::string("0"));
    CHECK_EQ(asked(shard,
                   "SELECT COUNT(*) FROM comm AS c LEFT JOIN comm AS p ON p.id = c.parent "
                   "WHERE c.parent IS NOT NULL AND p.id IS NULL")[0],
             std::string("0"));
    CHECK_EQ(asked(shard, "SELECT COUNT(*) FROM rank")[0], std::string("3"));
    // Its own ranks only: six communicators of all, three of one process.
    CHECK_EQ(asked(shard, "SELECT COUNT(*) FROM comm WHERE name GLOB 'S*'")[0], std::string("3"));
  }
}

TEST(dictionaries_that_are_the_same_send_no_entries) {
  VirtualJob job;
  job.ranks = 64;
  job.columns = 0;
  job.has_self = false;
  for (const int duplicates : {1, 200}) {
    job.duplicates = duplicates;
    std::mutex mutex;
    std::uint64_t bytes = 0;
    std::string members;
    Crowd(job.ranks).run([&](Crowd::Member& member) {
      std::deque<CommRecord> records;
      Profile profile;
      const std::vector<char> own = packed(job.counted(member.rank(), records), 0, {});
      CHECK(profile.add(own.data(), own.size()));
      CHECK(agree(member, profile.dictionary) == Agreed::yes);
      const std::lock_guard<std::mutex> lock(mutex);
      bytes += member.bytes_sent;
      if (member.rank() == 0) members = profile.dictionary.catalogue().comms.back().members;
    });
    CHECK_EQ(members, std::string("0-63"));
    CHECK_EQ(bytes, 63u * (sizeof(Digest) + sizeof(Block) + 8 + 1));
  }
}

TEST(one_rank_writes_a_million_rows_and_many_ranks_more) {
  CHECK_EQ(block_size(1024, 0, 474'000), 1024);
  CHECK_EQ(block_size(1'000'000, 0, 1'000'000), 1'000'000);
  CHECK_EQ(block_size(100'000, 0, 46'000'000), 216);
  CHECK_EQ(block_size(3, 0, 1'000'000'000'000), 1);
  CHECK_EQ(block_size(7, 3, 0), 3);
  CHECK_EQ(block_size(7, 100, 0), 1);
  CHECK_EQ(block_size(1, 0, 0), 1);
}

TEST(a_rank_with_a_session_keeps_all_from_collecting) {
  const Place place;
  std::mutex mutex;
  int early = 0;
  Crowd(6).run([&](Crowd::Member& member) {
    std::deque<CommRecord> records;
    VirtualJob job;
    job.ranks = 6;
    Terms terms;
    terms.counted = [&] { return job.counted(member.rank(), records); };
    terms.in_session = member.rank() == 4;
    terms.aggregators = 2;
    const Collected result = collect_together(member, terms);
    const std::lock_guard<std::mutex> lock(mutex);
    early += result == Collected::too_early ? 1 : 0;
  });
  CHECK_EQ(early, 6);
}

TEST(slices_become_wider_and_then_families_until_they_fit) {
  std::deque<CommRecord> records;
  VirtualJob job;
  job.ranks = 8;
  job.duplicates = 100;
  job.slices = 128;
  const Counted counted = job.counted(3, records);
  const SliceRows rows(counted);
  const std::uint64_t all = counted.slices.entries.size();
  CHECK_EQ(rows.within(all).doublings, 0u);
  CHECK_EQ(rows.within(all - 1).doublings, 1u);
  CHECK(!rows.within(all / 8).folded);
  CHECK_EQ(rows.within(all / 8).doublings, 3u);
  // The world, its duplicates, rows, columns, and the process itself; four procedures in each.
  CHECK(rows.within(all / 9).folded);
  CHECK_EQ(rows.within(5 * 4 * 128).doublings, 0u);
  CHECK_EQ(rows.within(5 * 4 * 16).doublings, 3u);
  CHECK_EQ(rows.within(0).doublings, 7u);
}

}  // namespace commlens
