// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/out/records.h"
#include "core/out/values.h"

namespace commlens::out {

// What the schema of a file contains beside its tables.
struct SchemaText {
  bool has_comments, has_views;
};

// The rows of a profile, in memory.  After the first error it ignores all rows and keeps the message.
class Database {
 public:
  Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void fail(const std::string& message);
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  std::size_t bytes() const;  // of all rows

  Rows& rows(const TableShape& shape) { return tables_[static_cast<std::size_t>(shape.number)]; }

  // Rows of this table that have the key of an earlier one are left out, because different bytes may become the same
  // text in UTF-8.  In other tables they are an error.
  void skip_equal(const TableShape& shape) { skips_equal_[static_cast<std::size_t>(shape.number)] = true; }

  // Returns the bytes of the file, and forgets the rows.
  std::vector<unsigned char> image(std::size_t page_size, const SchemaText& text);

 private:
  std::vector<Rows> tables_;
  std::vector<bool> skips_equal_;
  std::string error_;
};

enum class EqualKeys { fail, skip };

// Inserts rows into one table.  Row is a struct of generated/schema_rows.h; only generated code depends on the order of
// its columns.
template <class Row>
class Insert {
 public:
  explicit Insert(Database& db, EqualKeys equal = EqualKeys::fail) : db_(db), rows_(db.rows(Row::shape)) {
    if (equal == EqualKeys::skip) db.skip_equal(Row::shape);
  }

  void operator()(const Row& row) {
    int column = 0;
    auto number = static_cast<std::int64_t>(rows_.count() + 1);
    record_.clear();
    row.each([&](const char* name, const auto& value) {
      if (!value.is_set()) db_.fail(std::string("column ") + name + " has no value");
      if (column++ != Row::shape.row_number) {
        record_.add(value.get());
      } else {
        number_from(value.get(), number);
        record_.add(static_cast<const std::int64_t*>(nullptr));  // it is stored once
      }
    });
    if (db_.ok()) rows_.add(number, record_);
  }

 private:
  static void number_from(const std::int64_t* value, std::int64_t& number) {
    if (value != nullptr) number = *value;
  }
  template <class Other>
  static void number_from(const Other*, std::int64_t&) {}

  Database& db_;
  Rows& rows_;
  Record record_;
};

}  // namespace commlens::out
