// SPDX-License-Identifier: Apache-2.0
#include "core/out/sqlite.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "core/hot/thread.h"
#include "generated/procedures.h"
#include "generated/schema_sql.h"
#include "tests/unit/check.h"
#include "tests/unit/rank.h"
#include "third_party/sqlite/sqlite3.h"

namespace {

bool links_work = true;  // some file systems have no hard links

}  // namespace

// link(), as the linker calls it (--wrap, CMakeLists.txt).
extern "C" int __real_link(const char* from, const char* to);
extern "C" int __wrap_link(const char* from, const char* to) {
  if (links_work) return __real_link(from, to);
  errno = EPERM;
  return -1;
}

namespace commlens::out {
namespace {

namespace fs = std::filesystem;

// An empty directory, and $TMPDIR in another.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/commlens-out-XXXXXX";
    root_ = mkdtemp(path) != nullptr ? path : "/nonexistent";
    fs::create_directories(wanted());
    fs::create_directories(other());
    setenv("TMPDIR", other().c_str(), 1);
  }
  ~TemporaryFolder() {
    unsetenv("TMPDIR");
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path wanted() const { return root_ / "wanted"; }
  fs::path other() const { return root_ / "other"; }
  std::string name() const { return wanted() / "a.db"; }

  // The names of the files in a directory.
  static std::set<std::string> files(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
    return names;
  }

 private:
  fs::path root_;
};

using Names = std::set<std::string>;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The result of a query: columns joined by '|', rows by '\n'; NULL is "-".
std::string asked(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  std::string text;
  if (sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK ||
      sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    text = sqlite3_errmsg(db);
  }
  int code = SQLITE_DONE;
  while (statement != nullptr && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (!text.empty()) text += '\n';
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const unsigned char* const value = sqlite3_column_text(statement, i);
      text += (i == 0 ? "" : "|") + std::string(value == nullptr ? "-" : reinterpret_cast<const char*>(value));
    }
  }
  if (code != SQLITE_DONE) text = sqlite3_errmsg(db);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return text;
}

const std::string imports = written({{"MPI_Send_c", "app", Treatment::measured},
                                     {"mpi_bcast_", "app", Treatment::measured},
                                     {"mpi_send_", "liba.so", Treatment::measured},
                                     {"MPI_Wtime", "liba.so", Treatment::skipped},
                                     {"MPIX_Query", "liba.so", Treatment::unknown}});

// Two ranks, the world and a duplicate of which one rank has the name, a set, bytes, a v collective.
Profile some_profile() {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 2; ++rank) {
    packages.push_back(packed_by_rank(
        rank,
        [=](Registry& registry) {
          add_world(registry, rank, 2);
          const std::uint32_t dup =
              add_comm(registry, rank, {~Identity{5}, 'd', {0, 1}, reinterpret_cast<Site>(&asked)});
          registry.name(dup, "it's \"mine\"");
          count(world, op::MPI_Allreduce, 30, 10, 8);
          count(dup, op::MPI_Send, 1, 7, std::uint64_t{1} << 40);
          const std::uint32_t both[2] = {world, dup};
          count(registry.set_of(both, 2).index, op::MPI_Waitall, rank + 1);
          record(this_thread(), make_key(dup, op::MPI_Alltoallv, v_bin, 0), 0, 5, 1, 2);
        },
        imports));
  }
  return merged(packages);
}

const Meta meta{{"schema_version", std::to_string(schema_version)},
                {"command_line", "./app 'a b'\nnext \xc3\xa4"},
                {"job_id", ""},
                {"ranks", "2"}};

// A clock that is read when the file is built, and when it is on disk.
Ticks reads_of_clock = 0;
Ticks slow_clock() {
  ++reads_of_clock;
  return 1000 * reads_of_clock * reads_of_clock;
}

Stored stored(const std::string& name) {
  reads_of_clock = 0;
  return store(some_profile(), meta, name, {100, 230, 390, 600, 50, slow_clock});
}

}  // namespace

TEST(what_is_stored_can_be_read_back) {
  const TemporaryFolder place;
  const Stored result = stored(place.name());
  CHECK_EQ(result.path, place.name());
  CHECK_EQ(result.error, std::string());
  CHECK(TemporaryFolder::files(place.wanted()) == Names{"a.db"});
  const auto ask = [&](const char* sql) { return asked(result.path, sql); };
  CHECK_EQ(
      ask("SELECT * FROM meta ORDER BY key"),
      "command_line|./app 'a b'\nnext \xc3\xa4\njob_id|\nranks|2\nschema_version|" + std::to_string(schema_version));
  CHECK_EQ(ask("SELECT rank, world, node, pid, cpus, app_ns, mpi_ns, threads, calls, lost_calls, state, cpu_ns,"
               " preempted FROM rank"),
           std::string("0|42|node0|100|0-3|1000000|322|1|33|0|finalized|900000|7\n"
                       "1|42|node0|101|0-3|1000001|332|1|34|0|finalized|-|-"));
  const auto signed_number = [](Identity i) { return std::to_string(static_cast<std::int64_t>(i)); };
  CHECK_EQ(ask("SELECT id, hash, name, user_name, kind, parent, creator, callsite, size, remote_size, leader, members,"
               " topology, created_ns > 0, freed_ns, family FROM comm"),
           std::string("0|0|-|-|none|-|-|-|-|-|-|-|-|-|-|0\n"
                       "1|" +
                       signed_number(told(world_identity)) +
                       "|W0.0|-|intra|-|-|-|2|-|0|0-1|-|1|-|1\n"
                       "2|" +
                       signed_number(told(~Identity{5})) + "|d0.1|it's \"mine\"|intra|1|" +
                       std::to_string(op::MPI_Comm_dup) +
                       "|1|2|-|0|0-1|-|1|-|2\n"
                       "3|") +
               ask("SELECT hash FROM comm WHERE id = 3") + "|{W0.0,d0.1}|-|set|-|-|-|-|-|-|" +
               ask("SELECT COALESCE(members, '-') FROM comm WHERE id = 3") + "|-|-|-|3");
  CHECK_EQ(ask("SELECT * FROM comm_set"), std::string("3|1\n3|2"));
  CHECK_EQ(ask("SELECT comm.name, op.name, bin, rank, calls, time_ns, time_min_ns, time_max_ns, bytes_sent,"
               " bytes_received FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm"
               " JOIN op ON op.id = key.op ORDER BY comm.id, op.name, rank"),
           std::string("W0.0|MPI_Allreduce|4|0|30|300|10|10|240|0\n"
                       "W0.0|MPI_Allreduce|4|1|30|300|10|10|240|0\n"
                       "d0.1|MPI_Alltoallv|-1|0|1|5|5|5|1|2\n"
                       "d0.1|MPI_Alltoallv|-1|1|1|5|5|5|1|2\n"
                       "d0.1|MPI_Send|41|0|1|7|7|7|1099511627776|0\n"
                       "d0.1|MPI_Send|41|1|1|7|7|7|1099511627776|0\n"
                       "{W0.0,d0.1}|MPI_Waitall|0|0|1|10|10|10|0|0\n"
                       "{W0.0,d0.1}|MPI_Waitall|0|1|2|20|10|10|0|0"));
  // Those that are called or imported, and the unknown one.
  CHECK_EQ(ask("SELECT name FROM op WHERE id <> 0 ORDER BY name"),
           std::string("MPI_Allreduce\nMPI_Alltoallv\nMPI_Bcast\nMPI_Comm_dup\nMPI_Send\nMPI_Waitall"));
  CHECK_EQ(ask("SELECT rank, what FROM overhead ORDER BY rank, what"),
           std::string("0|agree\n0|call\n0|calls\n0|collect\n0|gather\n0|init\n0|split\n0|store\n0|wait\n0|write\n"
                       "1|call\n1|calls\n1|collect\n1|init\n1|wait"));
  CHECK_EQ(ask("SELECT what, ns FROM overhead WHERE what IN ('gather', 'agree', 'write', 'store') ORDER BY what"),
           std::string("agree|210\ngather|160\nstore|3000\nwrite|400"));
  CHECK_EQ(ask("PRAGMA integrity_check"), std::string("ok"));
  CHECK_EQ(ask("SELECT COUNT(*) FROM callsite WHERE module <> ''"), std::string("1"));
}

TEST(tables_and_views_are_those_that_sqlite_would_have_made) {
  const TemporaryFolder place;
  const std::string made = place.wanted() / "made.db";
  sqlite3* db = nullptr;
  sqlite3_open(made.c_str(), &db);
  CHECK_EQ(sqlite3_exec(db, bare_tables_sql, nullptr, nullptr, nullptr), SQLITE_OK);
  CHECK_EQ(sqlite3_exec(db, bare_views_sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const char* const all = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
  CHECK_EQ(asked(stored(place.name()).path, all), asked(made, all));
}

TEST(what_is_imported_stands_beside_what_was_called) {
  const TemporaryFolder place;
  const std::string path = stored(place.name()).path;
  const auto ask = [&](const char* sql) { return asked(path, sql); };
  CHECK_EQ(ask("SELECT symbol, object, procedure, state, ranks FROM coverage"),
           "MPIX_Query|liba.so|MPIX_Query|unseen|2\n"
           "MPI_Send_c|app|MPI_Send|measured|2\n"
           "MPI_Wtime|liba.so|MPI_Wtime|skipped|2\n"
           "mpi_bcast_|app|MPI_Bcast|measured|2\n"
           "mpi_send_|liba.so|MPI_Send|measured|2");
  CHECK_EQ(ask("SELECT reason IS NULL, COUNT(*) FROM coverage GROUP BY 1"), std::string("0|2\n1|3"));
  CHECK_EQ(ask("SELECT procedure, class, state, calls, objects FROM procedure ORDER BY procedure"),
           "MPIX_Query|-|unseen|-|liba.so\n"
           "MPI_Allreduce|collective|measured|60|-\n"
           "MPI_Alltoallv|collective|measured|2|-\n"
           "MPI_Bcast|collective|measured|0|app\n"
           "MPI_Send|p2p|measured|2|app,liba.so\n"
           "MPI_Waitall|completion|measured|3|-\n"
           "MPI_Wtime|-|skipped|-|liba.so");
}

TEST(names_that_are_no_utf8_can_be_read_all_the_same) {
  const TemporaryFolder place;
  const Profile profile = merged({packed_by_rank(0, [](Registry& registry) {
    add_world(registry, 0, 1);
    registry.name(world, "Gr\xfc\xdf e");
  })});
  const std::string path = store(profile, {{"program", "\xff"}}, place.name(), {}).path;
  CHECK_EQ(asked(path, "SELECT user_name FROM comm WHERE id = 1"), std::string("Gr\xef\xbf\xbd\xef\xbf\xbd e"));
  CHECK_EQ(asked(path, "SELECT value FROM meta"), std::string("\xef\xbf\xbd"));
}

TEST(the_file_says_what_it_is_and_is_sound) {
  const TemporaryFolder place;
  const std::string path = stored(place.name()).path;
  CHECK_EQ(asked(path, "PRAGMA user_version"), std::to_string(schema_version));
  CHECK_EQ(asked(path, "PRAGMA application_id"), std::to_string(application_id));
  CHECK_EQ(asked(path, "PRAGMA integrity_check"), std::string("ok"));
}

TEST(every_row_that_another_one_refers_to_is_there) {
  const TemporaryFolder place;
  const std::string path = stored(place.name()).path, copy = place.wanted() / "copy.db";
  sqlite3* db = nullptr;
  sqlite3_open(copy.c_str(), &db);  // small files do not name the references
  CHECK_EQ(sqlite3_exec(db, tables_sql, nullptr, nullptr, nullptr), SQLITE_OK);
  const std::string attach = "ATTACH '" + path + "' AS part";
  CHECK_EQ(sqlite3_exec(db, attach.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  std::istringstream names(asked(path, "SELECT name FROM sqlite_schema WHERE type = 'table'"));
  for (std::string name; std::getline(names, name);) {
    const std::string insert = "INSERT INTO main." + name + " SELECT * FROM part." + name;
    CHECK_EQ(sqlite3_exec(db, insert.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  }
  sqlite3_close(db);
  CHECK_EQ(asked(copy, "PRAGMA foreign_key_check"), std::string());
}

TEST(every_view_works_and_agrees_with_the_cells) {
  const TemporaryFolder place;
  const std::string path = stored(place.name()).path;
  std::istringstream views(asked(path, "SELECT name FROM sqlite_schema WHERE type = 'view'"));
  int n = 0;
  for (std::string view; std::getline(views, view); ++n) {
    CHECK(asked(path, "SELECT COUNT(*) FROM (SELECT * FROM " + view + ")").find_first_not_of("0123456789") ==
          std::string::npos);
  }
  CHECK(n >= 5);
  CHECK_EQ(asked(path, "SELECT SUM(calls), SUM(time_ns) FROM comm_total"), std::string("67|654"));
  CHECK_EQ(asked(path, "SELECT SUM(calls), SUM(time_ns) FROM family_operation"), std::string("67|654"));
  CHECK_EQ(asked(path, "SELECT comm, rank FROM member WHERE comm IN (1, 3)"), std::string("1|0\n1|1\n3|0\n3|1"));
}

TEST(an_existing_file_is_never_replaced) {
  const TemporaryFolder place;
  std::ofstream(place.name()) << "mine";
  fs::create_directory(place.wanted() / "a.1.db");
  CHECK_EQ(stored(place.name()).path, std::string(place.wanted() / "a.2.db"));
  CHECK_EQ(stored(place.name()).path, std::string(place.wanted() / "a.3.db"));
  CHECK_EQ(content(place.name()), std::string("mine"));
  CHECK(TemporaryFolder::files(place.wanted()) == (Names{"a.db", "a.1.db", "a.2.db", "a.3.db"}));
}

TEST(without_hard_links_it_works_all_the_same) {
  const TemporaryFolder place;
  std::ofstream(place.name()) << "mine";
  links_work = false;
  const Stored result = stored(place.name());
  links_work = true;
  CHECK_EQ(result.path, std::string(place.wanted() / "a.1.db"));
  CHECK_EQ(asked(result.path, "SELECT COUNT(*) FROM rank"), std::string("2"));
  CHECK_EQ(content(place.name()), std::string("mine"));
  CHECK(TemporaryFolder::files(place.wanted()) == (Names{"a.db", "a.1.db"}));
}

TEST(jobs_that_end_at_the_same_time_have_a_file_each) {
  const TemporaryFolder place;
  constexpr int jobs = 6;
  pid_t children[jobs];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      links_work = (&child - children) % 2 == 0;  // both ways must keep clear of each other
      _exit(stored(place.name()).error.empty() ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  const Names files = TemporaryFolder::files(place.wanted());
  CHECK_EQ(files.size(), static_cast<std::size_t>(jobs));
  for (const std::string& file : files) {
    CHECK_EQ(asked(place.wanted() / file, "PRAGMA integrity_check"), std::string("ok"));
    CHECK_EQ(asked(place.wanted() / file, "SELECT COUNT(*) FROM rank"), std::string("2"));
  }
}

TEST(a_directory_that_cannot_be_written_sends_the_profile_to_tmpdir) {
  const TemporaryFolder place;
  std::ofstream(place.wanted() / "file") << "";
  for (const char* name : {"nowhere/a.db", "file/a.db"}) {
    const Stored result = stored(place.wanted() / name);
    CHECK_EQ(fs::path(result.path).parent_path(), place.other());
    CHECK(result.error.find(place.wanted() / name) != std::string::npos);
    CHECK_EQ(asked(result.path, "SELECT COUNT(*) FROM rank"), std::string("2"));
  }
  CHECK(TemporaryFolder::files(place.wanted()) == Names{"file"});
  CHECK(TemporaryFolder::files(place.other()) == (Names{"a.db", "a.1.db"}));
}

TEST(a_profile_that_can_go_nowhere_is_reported_with_both_reasons) {
  const TemporaryFolder place;
  setenv("TMPDIR", "/nonexistent/tmp", 1);
  const Stored result = stored("/nonexistent/wanted/a.db");
  CHECK_EQ(result.path, std::string());
  CHECK(result.error.find("/nonexistent/wanted/a.db") != std::string::npos);
  CHECK(result.error.find("/nonexistent/tmp/a.db") != std::string::npos);
}

TEST(an_empty_tmpdir_is_none) {
  const TemporaryFolder place;
  setenv("TMPDIR", "", 1);
  const std::string name = "commlens-unit-test-" + std::to_string(getpid()) + ".db";
  const Stored result = stored("/nonexistent/" + name);
  CHECK_EQ(result.path, "/tmp/" + name);
  fs::remove(result.path);
}

TEST(a_limit_on_file_sizes_leaves_no_file_and_a_living_process) {
  const TemporaryFolder place;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{10'000, 10'000};
    setrlimit(RLIMIT_FSIZE, &small);
    const Stored result = stored(place.name());
    sigset_t pending;
    sigpending(&pending);
    const bool clean = sigismember(&pending, SIGXFSZ) == 0;
    _exit(result.path.empty() && result.error.find("File too large") != std::string::npos && clean ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(TemporaryFolder::files(place.wanted()).empty());
  CHECK(TemporaryFolder::files(place.other()).empty());
}

TEST(a_full_file_system_sends_the_profile_to_tmpdir) {
  const TemporaryFolder place;
  if (mount("commlens-test", place.wanted().c_str(), "tmpfs", 0, "size=128k") != 0) {
    std::cout << "not root: a full file system is not tried\n";
    return;
  }
  // A file without a name leaves 16 KiB; with pages of 64 KiB, nothing.
  const int filler = open(place.wanted().c_str(), O_TMPFILE | O_WRONLY, 0600);
  CHECK_EQ(posix_fallocate(filler, 0, 112 << 10), 0);
  const Stored result = stored(place.name());
  close(filler);
  CHECK_EQ(result.path, std::string(place.other() / "a.db"));
  CHECK(result.error.find("No space left") != std::string::npos);
  CHECK(TemporaryFolder::files(place.wanted()).empty());
  umount(place.wanted().c_str());
  CHECK_EQ(asked(result.path, "PRAGMA integrity_check"), std::string("ok"));
}

TEST(rows_the_database_refuses_are_reported_and_leave_no_file) {
  const TemporaryFolder place;
  Profile profile = some_profile();
  profile.rows.push_back(profile.rows.front());
  const Stored result = store(profile, meta, place.name(), {});
  CHECK_EQ(result.path, std::string());
  CHECK(result.error.find("two rows of cell_row are the same") != std::string::npos);
  CHECK(TemporaryFolder::files(place.wanted()).empty());
}

}  // namespace commlens::out
