// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/out/values.h"

struct sqlite3;
struct sqlite3_stmt;

namespace commlens::out {

// A database in memory.  After the first error it ignores all calls and keeps the message.
class Database {
 public:
  Database();
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  void fail();  // with the message of SQLite
  void fail(const std::string& message);
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_ = nullptr;
  std::string error_;
};

// A prepared INSERT statement.
class Statement {
 public:
  Statement(Database& db, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Set the value of the next column.  A value that was never set fails with the name of the column.
  void bind(const char* column, const Integer& value);
  void bind(const char* column, const Real& value);
  void bind(const char* column, const Text& value);
  void run();

 private:
  template <class Type>
  const Type* next(const char* column, const Value<Type>& value);

  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int at_ = 0;
};

// Inserts rows into one table.  Row is a struct of generated/schema_rows.h; only generated code depends on the order of
// its columns.
template <class Row>
class Insert {
 public:
  // how: "OR IGNORE" if texts are keys, because different bytes may become the same text in UTF-8.
  explicit Insert(Database& db, const char* how = "")
      : statement_(db, std::string("INSERT ") + how + " INTO " + Row::table + Row::values) {}

  void operator()(const Row& row) {
    row.each([this](const char* column, const auto& value) { statement_.bind(column, value); });
    statement_.run();
  }

 private:
  Statement statement_;
};

}  // namespace commlens::out
