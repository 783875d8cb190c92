// SPDX-License-Identifier: Apache-2.0
#include "core/out/findings.h"

#include "generated/schema_sql.h"
#include "tests/unit/check.h"
#include "third_party/sqlite/sqlite3.h"

using namespace commlens;
using namespace commlens::out;

namespace {

// A database in memory.
class Sql {
 public:
  Sql() { CHECK_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK); }
  ~Sql() { sqlite3_close(db_); }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;
  void run(const char* sql) { CHECK_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK); }
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

// A profile of three ranks, 10 s long, the second of which never waits, with the tables that the rules read.
void fill(Sql& db, const char* waiting_ns) {
  db.run(
      "CREATE TABLE meta (key TEXT, value TEXT); INSERT INTO meta VALUES ('ranks', '3');"
      "CREATE TABLE rank (rank INTEGER, node TEXT, app_ns INTEGER, mpi_ns INTEGER, threads INTEGER, state TEXT);"
      "CREATE TABLE comm (id INTEGER, name TEXT, user_name TEXT, kind TEXT, parent INTEGER, creator INTEGER,"
      "  callsite INTEGER, size INTEGER, remote_size INTEGER, leader INTEGER, topology TEXT, family INTEGER,"
      "  communicators INTEGER);"
      "INSERT INTO comm VALUES (1, 'W0.0', NULL, 'intra', NULL, NULL, NULL, 3, NULL, 0, NULL, 1, 1);"
      "CREATE TABLE op (id INTEGER, name TEXT, class TEXT); INSERT INTO op VALUES (1, 'MPI_Bcast', 'collective');"
      "CREATE TABLE key (id INTEGER PRIMARY KEY, comm INTEGER, op INTEGER, bin INTEGER, region INTEGER,"
      "  callsite INTEGER, usual_calls INTEGER, usual_sent INTEGER, usual_received INTEGER, usual_noncontig INTEGER);"
      "INSERT INTO key VALUES (3, 1, 1, 4, 0, 7, 10, 0, 0, 0);"
      "CREATE TABLE cell_row (id INTEGER PRIMARY KEY, calls INTEGER, time_ns INTEGER, time_min_ns INTEGER,"
      "  time_max_ns INTEGER, bytes_sent INTEGER, bytes_received INTEGER, noncontiguous INTEGER);"
      "CREATE TABLE untimed (key INTEGER, rank INTEGER, calls INTEGER, time_error_ns INTEGER);"
      "CREATE TABLE region (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT);"
      "CREATE TABLE region_time (region INTEGER, rank INTEGER, time_ns INTEGER, mpi_ns INTEGER)");
  db.run(views_sql);
  for (int rank = 0; rank < 3; ++rank) {
    const std::string ns = rank == 1 ? "0" : waiting_ns;
    db.run(("INSERT INTO rank VALUES (" + std::to_string(rank) + ", 'node0', 10000000000, " + ns + ", 1, 'finalized')")
               .c_str());
    db.run(("INSERT INTO cell_row VALUES (" + std::to_string(3 + rank) + ", 0, " + ns + ", 0, 0, 0, 0, 0)").c_str());
  }
}

}  // namespace

TEST(the_first_finding_is_a_sentence_without_the_call_site) {
  Sql db;
  fill(db, "4000000000");
  CHECK(first_finding(db.handle()) ==
        "rank 1 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 1 in MPI_Bcast");
}

TEST(the_region_in_which_a_rank_is_late_is_named_with_its_path) {
  Sql db;
  fill(db, "4000000000");
  db.run(
      "INSERT INTO region VALUES (0, NULL, ''), (1, 0, 'step'), (2, 1, 'forces');"
      "INSERT INTO region_time VALUES (1, 1, 9000000000, 0), (2, 1, 8000000000, 0), (1, 0, 5000000000, 1000000000)");
  CHECK(first_finding(db.handle()) ==
        "rank 1 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 1 in MPI_Bcast; "
        "the difference arises in region step/forces");
}

TEST(a_balanced_run_has_no_finding) {
  Sql db;
  fill(db, "1000000000");
  CHECK(first_finding(db.handle()).empty());
}

TEST(a_search_that_fails_finds_nothing_and_spoils_nothing) {
  Sql db;
  CHECK(first_finding(db.handle()).empty());
}

TEST(times_have_three_digits_and_a_unit) {
  CHECK(time_text(0) == "0 ns");
  CHECK(time_text(999) == "999 ns");
  CHECK(time_text(1'000) == "1.00 µs");
  CHECK(time_text(999'600) == "1.00 ms");
  CHECK(time_text(12'345'678) == "12.3 ms");
  CHECK(time_text(4'000'000'000'000) == "4000 s");
}

TEST(shares_are_in_per_cent) {
  CHECK(share_text(0) == "0 %");
  CHECK(share_text(0.00001) == "<0.1 %");
  CHECK(share_text(0.0123) == "1.2 %");
  CHECK(share_text(1) == "100.0 %");
}
