// SPDX-License-Identifier: Apache-2.0
// Whole jobs whose processes are threads: what is in the files must not depend on how many write them.
#include "core/collect/collect.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "core/collect/agree.h"
#include "core/collect/package.h"
#include "core/profile/profile.h"
#include "core/profile/spread.h"
#include "tests/unit/check.h"
#include "tests/unit/collect/crowd.h"
#include "tests/unit/collect/virtual_job.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/commlens-collect-XXXXXX";
    root = mkdtemp(path) != nullptr ? path : "/nonexistent";
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path root;
};

// Runs a job to its end; returns how many ranks know their data in a profile.  collect(member, own): lets a member
// collect what it contributes.
template <class Collect>
int collected_by(const VirtualJob& job, const fs::path& name, Collect collect) {
  std::mutex mutex;
  int stored = 0;
  Crowd(job.ranks).run([&](Crowd::Member& member) {
    std::deque<CommRecord> records;
    Contribution own;
    own.counted = job.counted(member.rank(), records);
    own.destination.meta = {{"program", "virtual"}};
    own.destination.name = name.string();
    own.destination.quiet = true;
    const CollectResult result = collect(member, std::move(own));
    const std::lock_guard<std::mutex> lock(mutex);
    stored += result == CollectResult::stored ? 1 : 0;
  });
  return stored;
}

int collected(const VirtualJob& job, const fs::path& name, const std::function<unsigned long(int)>& aggregators,
              int asks_for_summary = -1) {
  return collected_by(job, name, [&](Crowd::Member& member, Contribution own) {
    own.aggregators = aggregators(member.rank());
    own.summary = member.rank() == asks_for_summary;
    return collect_together(member, std::move(own));
  });
}

int collected(const VirtualJob& job, const fs::path& name, unsigned long aggregators, int asks_for_summary = -1) {
  return collected(job, name, [aggregators](int) { return aggregators; }, asks_for_summary);
}

// The same with the collective operations of the group.  most: bytes that rank 0 has room for.
int collected_together(const VirtualJob& job, const fs::path& name, std::size_t most, unsigned long aggregators) {
  return collected_by(job, name, [&](Crowd::Member& member, Contribution own) {
    Crowd::Together group(member, most);
    own.aggregators = aggregators;
    return collect_together(group, std::move(own));
  });
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
    "UNION ALL SELECT 'site', id, module, build_id, offset, caller, 0, 0, 0, 0, 0, 0 FROM callsite "
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
    "UNION ALL SELECT 'peer', comm, flow, rank, peer, peers, bin, messages, bytes FROM peer "
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
    const TemporaryFolder place;
    VirtualJob job;
    job.ranks = ranks;
    job.slices = 5;
    job.frames = 4;
    job.neighbours = 26;
    CHECK_EQ(collected(job, place.root / "one.db", 1), ranks);
    // 26 messages of a thousand each way.
    CHECK_EQ(asked(place.root / "one.db", "SELECT SUM(messages), SUM(bytes) FROM peer WHERE flow = 0")[0],
             std::to_string(26'000 * ranks) + "|" +
                 std::to_string(1000ull * static_cast<unsigned>(ranks) * ((6 << 14) + (12 << 8) + (8 << 2))));
    const std::multiset<std::string> rows = rows_of({place.root / "one.db"});
    const std::vector<std::string> dictionary = asked(place.root / "one.db", dictionary_sql);
    const std::size_t comms = static_cast<std::size_t>(1 + job.duplicates + 2 + 1);
    CHECK(rows.size() > static_cast<std::size_t>(ranks) * comms * 4);
    // All call paths have four frames, and their outer parts are shared.
    CHECK_EQ(
        asked(place.root / "one.db",
              "WITH RECURSIVE path AS (SELECT callsite AS site, 1 AS frames, id FROM key UNION ALL "
              "SELECT caller, frames + 1, path.id FROM path JOIN callsite ON callsite.id = site "
              "WHERE caller IS NOT NULL), longest AS (SELECT MAX(frames) AS frames FROM path GROUP BY id) "
              "SELECT MIN(frames), MAX(frames), (SELECT COUNT(*) FROM callsite WHERE caller > id) FROM longest")[0],
        std::string("4|4|0"));
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
  const TemporaryFolder place;
  VirtualJob job;
  job.ranks = 12;
  job.slices = 2;
  job.frames = 3;
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
    CHECK_EQ(
        asked(shard,
              "SELECT COUNT(*) > 0, SUM(o.id IS NULL) FROM callsite AS c LEFT JOIN callsite AS o ON o.id = c.caller "
              "WHERE c.caller IS NOT NULL")[0],
        std::string("1|0"));
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
      CHECK(agree(member, profile.dictionary) == AgreementResult::yes);
      const std::lock_guard<std::mutex> lock(mutex);
      bytes += member.bytes_sent;
      if (member.rank() == 0) members = profile.dictionary.catalogue().comms.back().members;
    });
    CHECK_EQ(members, std::string("0-63"));
    CHECK_EQ(bytes, 63u * (sizeof(Digest) + sizeof(Block) + 8 + 1));
  }
}

TEST(what_as_many_ranks_of_two_blocks_import_is_not_taken_for_what_all_do) {
  const std::string often = written({{"MPI_Send", "app", Treatment::measured}});
  const std::string seldom = written({{"MPI_Put", "plugin", Treatment::measured}});
  for (const bool is_same : {true, false}) {
    Dictionary low, high;
    for (int rank = 0; rank < 8; ++rank) {
      Dictionary& own = rank < 4 ? low : high;
      own.add_rank(rank);
      CHECK(own.add_text(TextKind::imports, rank % 4 == 1 ? seldom : often));
    }
    if (!is_same) high.site({"app", "", 1});
    const std::vector<Identity> there = high.identities();
    CHECK_EQ(digest_of(there) == digest_of(low.identities()), is_same);
    if (is_same) {
      low.add_same(high.block());
    } else {
      CHECK(low.add_entries(high.entries(low.wanted(there, high.block())), high.block()));
    }
    CHECK_EQ(low.coverage().at({"MPI_Put", "plugin"}).ranks, 2);
    CHECK_EQ(low.coverage().at({"MPI_Send", "app"}).ranks, 6);
  }
}

namespace {

// A profile of all ranks and a summary of the same job.
class FullAndSummary {
 public:
  explicit FullAndSummary(int ranks) {
    VirtualJob job;
    job.ranks = ranks;
    CHECK_EQ(collected(job, place_.root / "full.db", 1), ranks);
    CHECK_EQ(collected(job, summary(), 3, ranks / 2), ranks);
  }

  // The rows of a query on one are those of another query on the other.
  void same(const std::string& full, const std::string& of_summary) const {
    const std::vector<std::string> wanted = asked(place_.root / "full.db", full);
    const std::vector<std::string> found = asked(summary(), of_summary);
    CHECK(!wanted.empty());
    CHECK_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) CHECK_EQ(found[i], wanted[i]);
  }
  void same(const std::string& query) const { same(query, query); }

  fs::path summary() const { return place_.root / "summary.db"; }

 private:
  TemporaryFolder place_;
};

// Communicators by what those of one size that one call made have in common: here the call site, the size and
// the letter, and the count of their leaders for duplicates.
const std::string kin =
    "CASE WHEN SUBSTR(comm.name, 1, 1) = 'd' THEN comm.name ELSE SUBSTR(comm.name, 1, 1) END "
    "|| ' ' || comm.size || ' ' || COALESCE((SELECT offset FROM callsite WHERE callsite.id = comm.callsite), '')";

// The counters of each line of keys, by all ranks and by the spread over them.
void same_counters(const FullAndSummary& both) {
  const std::string site = "COALESCE((SELECT offset FROM callsite WHERE callsite.id = key.callsite), 0)";
  const auto spread = [](const std::string& name, const std::string& counter) {
    const std::string sum = counter == "time_min_ns" || counter == "time_max_ns" ? "'-'" : "sum";
    return "SELECT " + name + ", ranks, " + sum +
           ", min, min_rank, max, max_rank FROM spread JOIN scope ON scope.id = spread.scope "
           "JOIN key ON key.id = scope.key JOIN comm ON comm.id = key.comm WHERE counter = '" +
           counter + "' ORDER BY 1";
  };
  const std::string key = kin + " || ' ' || key.op || ' ' || key.bin || ' ' || " + site;
  for (const std::string counter : {"calls", "time_ns", "time_min_ns", "time_max_ns", "bytes_sent", "bytes_received"}) {
    both.same(
        "WITH r AS (SELECT " + key + " AS line, cell.rank, SUM(cell." + counter +
            ") AS value FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm GROUP BY line, rank) "
            "SELECT line, COUNT(*), " +
            (counter.substr(0, 5) == "time_" && counter != "time_ns" ? "'-'" : "SUM(value)") +
            ", MIN(value), "
            "(SELECT MIN(rank) FROM r AS s WHERE s.line = r.line AND value = MIN(r.value)), MAX(value), "
            "(SELECT MIN(rank) FROM r AS s WHERE s.line = r.line AND value = MAX(r.value)) FROM r GROUP BY line",
        spread(key, counter));
  }
}

void same_ranks(const FullAndSummary& both) {
  both.same("SELECT COUNT(*), SUM(app_ns), MAX(app_ns), SUM(mpi_ns), MIN(mpi_ns), MAX(mpi_ns), SUM(calls) FROM rank",
            "SELECT app.ranks, app.sum, app.max, mpi.sum, mpi.min, mpi.max, calls.sum FROM scope "
            "JOIN spread AS app ON app.scope = scope.id AND app.counter = 'app_ns' "
            "JOIN spread AS mpi ON mpi.scope = scope.id AND mpi.counter = 'mpi_ns' "
            "JOIN spread AS calls ON calls.scope = scope.id AND calls.counter = 'calls' "
            "WHERE family IS NULL AND comm IS NULL");
  // The virtual job knows the use of the CPUs of three in four ranks.
  both.same(
      "SELECT COUNT(cpu_ns), SUM(cpu_ns), MIN(cpu_ns), COUNT(preempted), SUM(preempted), MAX(preempted) FROM rank",
      "SELECT cpu.ranks, cpu.sum, cpu.min, preempted.ranks, preempted.sum, preempted.max FROM scope "
      "JOIN spread AS cpu ON cpu.scope = scope.id AND cpu.counter = 'cpu_ns' "
      "JOIN spread AS preempted ON preempted.scope = scope.id AND preempted.counter = 'preempted' "
      "WHERE family IS NULL AND comm IS NULL");
}

}  // namespace

// What SQL says of the rows of all ranks is what the ranks have come to without them.
TEST(a_summary_says_what_the_rows_of_all_ranks_say) {
  for (const int ranks : {1, 2, 5, 16, 33}) {
    const FullAndSummary both(ranks);
    both.same("SELECT " + kin + " AS kin, COUNT(*) FROM comm WHERE kind = 'intra' GROUP BY kin ORDER BY kin",
              "SELECT " + kin + " AS kin, communicators FROM comm WHERE kind = 'intra' ORDER BY kin");
    same_counters(both);
    for (const std::string view : {"family_total", "family_operation"})
      both.same("SELECT (SELECT name FROM family WHERE family.family = v.family), * FROM " + view +
                " AS v ORDER BY 2, 3, 4");
    same_ranks(both);
    both.same("SELECT value FROM meta WHERE key IN ('ranks', 'ranks_collected', 'elapsed_ns', 'nodes') ORDER BY key");
    both.same("SELECT * FROM coverage");
    CHECK_EQ(
        asked(both.summary(),
              "SELECT (SELECT COUNT(*) FROM rank) + (SELECT COUNT(*) FROM cell_row) + (SELECT COUNT(*) FROM slice)")[0],
        "0");
  }
}

TEST(a_summary_is_as_large_for_many_ranks_as_for_few) {
  const TemporaryFolder place;
  std::vector<std::size_t> sizes;
  for (const int ranks : {16, 64, 256}) {
    VirtualJob job;
    job.ranks = ranks;
    job.columns = 4;
    const fs::path name = place.root / (std::to_string(ranks) + ".db");
    CHECK_EQ(collected(job, name, 0, 0), ranks);
    sizes.push_back(fs::file_size(name));
    CHECK_EQ(asked(name, "SELECT COUNT(*) FROM scope WHERE key IS NOT NULL")[0], "28");
  }
  CHECK(sizes[2] < sizes[0] + sizes[0] / 8);
}

TEST(quantiles_are_within_a_sixteenth) {
  Spread all, other;
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 1000; ++i) values.push_back(mixed(i) >> (i % 60));
  for (std::size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? other : all).add(values[i], static_cast<int>(i));
  all.add(other);
  std::sort(values.begin(), values.end());
  CHECK_EQ(all.ranks, values.size());
  CHECK_EQ(all.min, values.front());
  CHECK_EQ(all.max, values.back());
  for (const double share : {0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
    const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    const auto wanted = static_cast<double>(values[at]), found = static_cast<double>(all.at(share));
    CHECK(std::abs(found - wanted) <= wanted / 16);
  }
  Spread same;
  for (int rank = 0; rank < 100; ++rank) same.add(1'000'003, rank);
  CHECK_EQ(same.at(0.05), 1'000'003u);
  CHECK_EQ(same.at(0.95), 1'000'003u);
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

TEST(the_largest_number_of_aggregators_that_a_rank_was_told_holds_for_all) {
  const TemporaryFolder place;
  VirtualJob job;
  job.ranks = 6;
  const auto told = [](int rank) { return rank == 0 ? 3UL : static_cast<unsigned long>(rank % 2); };
  CHECK_EQ(collected(job, place.root / "told.db", told), 6);
  for (const char* const shard : {"shard.0.db", "shard.1.db", "shard.2.db"}) {
    const std::vector<std::string> ranks = {"2"};
    CHECK(asked(place.root / "told.commlens" / shard, "SELECT COUNT(*) FROM rank") == ranks);
  }
  CHECK(!fs::exists(place.root / "told.commlens" / "shard.3.db"));
}

TEST(a_rank_with_a_session_keeps_all_from_collecting) {
  const TemporaryFolder place;
  std::mutex mutex;
  int early = 0;
  Crowd(6).run([&](Crowd::Member& member) {
    std::deque<CommRecord> records;
    VirtualJob job;
    job.ranks = 6;
    Contribution own;
    own.destination.name = "not.db";
    own.counted = job.counted(member.rank(), records);
    own.in_session = member.rank() == 4;
    own.aggregators = 2;
    const CollectResult result = collect_together(member, std::move(own));
    const std::lock_guard<std::mutex> lock(mutex);
    early += result == CollectResult::too_early ? 1 : 0;
  });
  CHECK_EQ(early, 6);
}

TEST(collective_operations_give_the_same_profile_as_messages) {
  constexpr std::size_t room = std::size_t{1} << 30;
  for (const int ranks : {1, 2, 7, 33}) {
    const TemporaryFolder place;
    VirtualJob job;
    job.ranks = ranks;
    job.slices = 5;
    job.neighbours = 6;
    CHECK_EQ(collected(job, place.root / "messages.db", 1), ranks);
    const auto expected = rows_of({place.root / "messages.db"});
    const auto names = asked(place.root / "messages.db", dictionary_sql);
    // At once, with too little room for that, and with two writers.
    for (const auto& [file, most, aggregators] :
         {std::tuple{"once", room, 1ul}, std::tuple{"little", std::size_t{10}, 1ul}, std::tuple{"two", room, 2ul}}) {
      const fs::path name = place.root / (std::string(file) + ".db");
      CHECK_EQ(collected_together(job, name, most, aggregators), ranks);
      const bool is_split = ranks > 1 && aggregators > 1;
      const fs::path shards = place.root / (std::string(file) + ".commlens");
      CHECK(rows_of(is_split ? shards_in(shards) : std::vector<fs::path>{name}) == expected);
      CHECK(asked(is_split ? shards / "index.db" : name, dictionary_sql) == names);
    }
  }
}

TEST(ranks_that_cannot_send_messages_have_done_nothing) {
  VirtualJob job;
  job.ranks = 3;
  std::mutex mutex;
  int without = 0;
  Crowd(job.ranks).run([&](Crowd::Member& member) {
    Crowd::Together group(member, 10);
    group.can_connect = false;
    std::deque<CommRecord> records;
    Contribution own;
    own.counted = job.counted(member.rank(), records);
    own.destination.name = "not.db";
    const CollectResult result = collect_together(group, std::move(own));
    const std::lock_guard<std::mutex> lock(mutex);
    without += result == CollectResult::no_messages ? 1 : 0;
  });
  CHECK_EQ(without, 3);
  CHECK(!fs::exists("not.db"));
}

TEST(ranks_get_the_world_of_rank_0_and_do_not_count_the_wait_for_the_last) {
  const TemporaryFolder place;
  VirtualJob job;
  job.ranks = 3;
  std::mutex mutex;
  std::vector<Identity> worlds;
  Crowd(job.ranks).run([&](Crowd::Member& member) {
    Crowd::Together group(member, std::size_t{1} << 30);
    group.waiting = static_cast<Ticks>(member.rank()) << 20;
    std::deque<CommRecord> records;
    Identity world = member.rank() == 0 ? 42 : 0;
    Contribution own;
    own.counted = job.counted(member.rank(), records);
    own.counted->scale = TickScale();
    own.destination.name = (place.root / "one.db").string();
    own.destination.quiet = true;
    own.world = &world;
    collect_together(group, std::move(own));
    const std::lock_guard<std::mutex> lock(mutex);
    worlds.push_back(world);
  });
  CHECK(worlds == std::vector<Identity>(3, 42));
  CHECK(asked(place.root / "one.db", "SELECT ns > 0 FROM overhead WHERE what = 'wait' ORDER BY rank") ==
        (std::vector<std::string>{"0", "1", "1"}));
}

TEST(a_profile_for_dev_null_is_not_written_and_done_with) {
  VirtualJob job;
  job.ranks = 6;
  for (const unsigned long aggregators : {1, 3}) CHECK_EQ(collected(job, "/dev/null", aggregators), 6);
  CHECK_EQ(collected(job, "/dev/null", 1, 2), 6);
  for (const char* name : {"/dev/null.1", "/dev/null.commlens"}) CHECK(!fs::exists(name));
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
