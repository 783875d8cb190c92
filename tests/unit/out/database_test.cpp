// SPDX-License-Identifier: Apache-2.0
#include "core/out/database.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "generated/schema_rows.h"
#include "generated/schema_sql.h"
#include "tests/unit/check.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {
namespace {

// SQLite with a file of ours.
class OpeningKind {
 public:
  explicit OpeningKind(Database& db, std::size_t page_size = 512, SchemaText text = {false, true})
      : file_(db.image(page_size, text)) {
    const auto size = static_cast<sqlite3_int64>(file_.size());
    sqlite3_open(":memory:", &db_);
    CHECK_EQ(sqlite3_deserialize(db_, "main", file_.data(), size, size, SQLITE_DESERIALIZE_READONLY), SQLITE_OK);
  }
  ~OpeningKind() { sqlite3_close(db_); }
  OpeningKind(const OpeningKind&) = delete;
  OpeningKind& operator=(const OpeningKind&) = delete;

  // Returns the rows of a query, with | between the columns.
  std::string asked(const std::string& sql) const {
    std::string text;
    const auto collect = [](void* out, int columns, char** values, char**) {
      auto& all = *static_cast<std::string*>(out);
      if (!all.empty()) all += '\n';
      for (int i = 0; i < columns; ++i) {
        all += (i == 0 ? "" : "|") + std::string(values[i] == nullptr ? "NULL" : values[i]);
      }
      return 0;
    };
    char* error = nullptr;
    if (sqlite3_exec(db_, sql.c_str(), collect, &text, &error) != SQLITE_OK) text = error;
    sqlite3_free(error);
    return text;
  }
  std::size_t size() const { return file_.size(); }

 private:
  std::vector<unsigned char> file_;
  sqlite3* db_ = nullptr;
};

rows::CellRow cell() {
  rows::CellRow row;
  row.id = 7;
  row.calls = std::uint64_t{2} - std::uint64_t{5};
  row.time_ns = 10u;
  row.time_min_ns = 1;
  row.time_max_ns = std::int64_t{9};
  row.bytes_sent = 0;
  row.bytes_received = 64;
  row.noncontiguous = false;
  return row;
}

TEST(an_insert_puts_each_value_into_the_column_of_its_name) {
  Database db;
  Insert<rows::CellRow> insert(db);
  insert(cell());
  CHECK_EQ(db.error(), "");
  CHECK_EQ(OpeningKind(db).asked(
               "SELECT noncontiguous, bytes_received, bytes_sent, time_max_ns, time_min_ns, time_ns, calls, id "
               "FROM cell_row"),
           "0|64|0|9|1|10|-3|7");
}

TEST(an_insert_stores_text_real_and_null) {
  Database db;
  Insert<rows::MetricValue> insert(db);
  rows::MetricValue row;
  row.metric = row.region = row.execution = row.iteration = row.rank = row.count = row.not_finite = 1;
  row.sum = 0.5;
  row.min = row.max = row.last = null;
  insert(row);
  Insert<rows::Coverage> insert_coverage(db, EqualKeys::skip);
  rows::Coverage coverage;
  coverage.symbol = "MPI_Send";
  coverage.object = coverage.procedure = coverage.state = std::string("a\xff");
  coverage.reason = text_or_null("");
  coverage.ranks = known(-1);
  insert_coverage(coverage);
  CHECK_EQ(db.error(), "");
  coverage.symbol = std::string("MPI_Send");
  insert_coverage(coverage);
  const OpeningKind opened(db);
  CHECK_EQ(opened.asked("SELECT sum, min, max, last FROM metric_value"), "0.5|NULL|NULL|NULL");
  CHECK_EQ(opened.asked("SELECT symbol, object = 'a\xef\xbf\xbd', reason, ranks FROM coverage"),
           "MPI_Send|1|NULL|NULL");
}

TEST(a_value_that_was_never_set_is_an_error_that_names_the_column) {
  Database db;
  Insert<rows::CellRow> insert(db);
  rows::CellRow row = cell();
  row.bytes_sent = Integer();
  insert(row);
  CHECK_EQ(db.error(), "column cell_row.bytes_sent has no value");
  CHECK(db.image(512, {false, true}).empty());
}

TEST(a_database_keeps_its_first_error) {
  Database db;
  db.fail("the first");
  db.fail("the second");
  Insert<rows::CellRow> insert(db);
  insert(cell());
  CHECK_EQ(db.error(), "the first");
}

TEST(two_rows_with_one_key_are_an_error) {
  Database db;
  Insert<rows::CellRow> insert(db);
  insert(cell());
  insert(cell());
  CHECK(db.image(512, {false, true}).empty());
  CHECK_EQ(db.error(), "two rows of cell_row are the same");
}

// All numbers and lengths at which SQLite stores something in another way, and some between.
const std::vector<std::int64_t>& numbers() {
  static const auto all = [] {
    std::vector<std::int64_t> found;
    for (int bit = 0; bit < 63; ++bit) {
      for (const std::int64_t more : {-1, 0, 1}) {
        found.push_back((std::int64_t{1} << bit) + more);
        found.push_back(-(std::int64_t{1} << bit) + more);
      }
    }
    found.push_back(INT64_MIN);
    found.push_back(INT64_MAX);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }();
  return all;
}

TEST(every_number_reads_as_it_was_written) {
  Database db;
  Insert<rows::CellRow> insert(db);
  std::string expected;
  for (const std::int64_t number : numbers()) {
    rows::CellRow row = cell();
    row.id = number;
    row.calls = number;
    insert(row);
    expected += (expected.empty() ? "" : "\n") + std::to_string(number) + "|" + std::to_string(number);
  }
  const OpeningKind opened(db);
  CHECK_EQ(opened.asked("PRAGMA integrity_check"), "ok");
  CHECK_EQ(opened.asked("SELECT id, calls FROM cell_row ORDER BY id"), expected);
}

// A text of a length that may need further pages.
std::string some_text(std::mt19937& random) {
  const std::size_t limits[] = {0, 3, 40, 130, 600, 5000};
  const std::size_t most = limits[random() % 6];
  return std::string(most == 0 ? 0 : random() % most, static_cast<char>('a' + random() % 26));
}

void check_random_tables(std::size_t page_size, int count, unsigned seed) {
  std::mt19937 random(seed);
  Database db, reference;
  Insert<rows::Callsite> numbered(db);
  Insert<rows::Tag> keyed(db, EqualKeys::skip);
  Insert<rows::Peer> counted(db);
  std::string by_number, by_count;
  std::vector<std::string> by_key;
  for (int i = 0; i < count; ++i) {
    rows::Callsite site;
    site.id = 3 * i + 1;
    site.module = some_text(random);
    site.build_id = std::string("b");
    site.offset = std::uint64_t{random()} << 20;
    site.caller = null;
    numbered(site);
    by_number += (i == 0 ? "" : "\n") + std::to_string(3 * i + 1) + "|" + *site.module.get() + "|" +
                 std::to_string(*site.offset.get());
    rows::Tag tag;
    tag.region = random() % 7;
    tag.name = some_text(random);
    tag.value = std::to_string(random() % 1000);
    keyed(tag);
    by_key.push_back(std::to_string(*tag.region.get()) + "|" + *tag.name.get() + "|" + *tag.value.get());
    rows::Peer peer;
    peer.each([](const char*, const auto& value) {
      const_cast<std::decay_t<decltype(value)>&>(value) = null;  // NOLINT: of this function
    });
    peer.messages = i;
    counted(peer);
    by_count += (i == 0 ? "" : "\n") + std::to_string(i + 1) + "|" + std::to_string(i);
  }
  std::sort(by_key.begin(), by_key.end());
  by_key.erase(std::unique(by_key.begin(), by_key.end()), by_key.end());
  std::string keys;
  for (const std::string& key : by_key) keys += (keys.empty() ? "" : "\n") + key;
  const OpeningKind opened(db, page_size);
  CHECK_EQ(opened.asked("PRAGMA integrity_check"), "ok");
  CHECK_EQ(opened.asked("SELECT id, module, offset FROM callsite ORDER BY id"), by_number);
  CHECK_EQ(opened.asked("SELECT region, name, value FROM tag ORDER BY region || '|' || name || '|' || value"), keys);
  CHECK_EQ(opened.asked("SELECT rowid, messages FROM peer ORDER BY rowid"), by_count);
  CHECK_EQ(opened.asked("SELECT COUNT(*) FROM tag AS t WHERE NOT EXISTS (SELECT 1 FROM tag WHERE region = t.region AND"
                        " name = t.name AND value = t.value)"),
           "0");
  CHECK_EQ(opened.asked("SELECT COUNT(*) FROM callsite AS c WHERE NOT EXISTS (SELECT 1 FROM callsite WHERE id = c.id)"),
           "0");
}

TEST(sqlite_finds_all_rows_whatever_their_number_and_length) {
  unsigned seed = 0;
  for (const std::size_t page_size : {512, 1024, 4096}) {
    for (int count = 0; count < 40; ++count) check_random_tables(page_size, count, ++seed);
    for (const int count : {100, 333, check::is_slow ? 500 : 4000}) check_random_tables(page_size, count, ++seed);
  }
}

TEST(trees_of_every_height_are_sound) {
  for (int count = 0; count < (check::is_slow ? 200 : 1500); ++count) {
    Database db;
    Insert<rows::Slice> insert(db);
    for (int i = 0; i < count; ++i) {
      rows::Slice row;
      row.comm = i / 100;
      row.op = row.rank = row.calls = row.time_ns = row.bytes_sent = row.bytes_received = 1000000 + i;
      row.slot = i % 100;
      insert(row);
    }
    const OpeningKind opened(db);
    CHECK_EQ(opened.asked("PRAGMA integrity_check"), "ok");
    CHECK_EQ(opened.asked("SELECT COUNT(*), COALESCE(SUM(calls), 0) FROM slice"),
             std::to_string(count) + "|" +
                 std::to_string(std::int64_t{count} * 1000000 + std::int64_t{count} * (count - 1) / 2));
  }
}

TEST(an_empty_profile_is_smaller_than_48_KiB) {
  Database db;
  CHECK(OpeningKind(db).size() < std::size_t{45} * 1024);
}

TEST(short_views_return_what_long_ones_return) {
  Database short_db, long_db;
  for (Database* const db : {&short_db, &long_db}) Insert<rows::CellRow>{*db}(cell());
  const OpeningKind with_short(short_db, 512, {false, true}), with_long(long_db, 4096, {true, true});
  const std::string names = with_long.asked("SELECT name FROM sqlite_master ORDER BY name");
  CHECK_EQ(with_short.asked("SELECT name FROM sqlite_master ORDER BY name"), names);
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('\n', at), names.size());
    const std::string name = names.substr(at, end - at);
    for (const std::string& sql : {"PRAGMA table_info(" + name + ")", "SELECT * FROM " + name}) {
      CHECK_EQ(with_short.asked(sql), with_long.asked(sql));
    }
    at = end + 1;
  }
}

}  // namespace
}  // namespace commlens::out
