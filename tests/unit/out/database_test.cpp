// SPDX-License-Identifier: Apache-2.0
#include "core/out/database.h"

#include <cstdint>
#include <string>

#include "generated/schema_rows.h"
#include "generated/schema_sql.h"
#include "tests/unit/check.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {
namespace {

// Returns the only row of a query as text, with | between the columns.
std::string row_of(Database& db, const char* sql) {
  std::string text;
  const auto collect = [](void* out, int columns, char** values, char**) {
    for (int i = 0; i < columns; ++i) {
      *static_cast<std::string*>(out) += (i == 0 ? "" : "|") + std::string(values[i] == nullptr ? "NULL" : values[i]);
    }
    return 0;
  };
  CHECK_EQ(sqlite3_exec(db.handle(), sql, collect, &text, nullptr), SQLITE_OK);
  return text;
}

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
  db.run(tables_sql);
  Insert<rows::CellRow> insert(db);
  insert(cell());
  CHECK_EQ(db.error(), "");
  CHECK_EQ(row_of(db,
                  "SELECT noncontiguous, bytes_received, bytes_sent, time_max_ns, time_min_ns, time_ns, calls, id "
                  "FROM cell_row"),
           "0|64|0|9|1|10|-3|7");
}

TEST(an_insert_stores_text_real_and_null) {
  Database db;
  db.run(tables_sql);
  Insert<rows::MetricValue> insert(db);
  rows::MetricValue row;
  row.metric = row.region = row.execution = row.iteration = row.rank = row.count = row.not_finite = 1;
  row.sum = 0.5;
  row.min = row.max = row.last = null;
  insert(row);
  Insert<rows::Coverage> insert_coverage(db, "OR IGNORE");
  rows::Coverage coverage;
  coverage.symbol = "MPI_Send";
  coverage.object = coverage.procedure = coverage.state = std::string("a\xff");
  coverage.reason = text_or_null("");
  coverage.ranks = known(-1);
  insert_coverage(coverage);
  CHECK_EQ(db.error(), "");
  CHECK_EQ(row_of(db, "SELECT sum, min, max, last FROM metric_value"), "0.5|NULL|NULL|NULL");
  CHECK_EQ(row_of(db, "SELECT symbol, reason, ranks FROM coverage"), "MPI_Send|NULL|NULL");
}

TEST(a_value_that_was_never_set_is_an_error_that_names_the_column) {
  Database db;
  db.run(tables_sql);
  Insert<rows::CellRow> insert(db);
  rows::CellRow row = cell();
  row.bytes_sent = Integer();
  insert(row);
  CHECK_EQ(db.error(), "column cell_row.bytes_sent has no value");
  CHECK_EQ(row_of(db, "SELECT COUNT(*) FROM cell_row"), "0");
}

TEST(a_database_keeps_its_first_error) {
  Database db;
  db.run("CREATE nonsense");
  const std::string first = db.error();
  CHECK(!first.empty());
  Insert<rows::CellRow> insert(db);
  insert(cell());
  CHECK_EQ(db.error(), first);
}

}  // namespace
}  // namespace commlens::out
