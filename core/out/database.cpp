// SPDX-License-Identifier: Apache-2.0
#include "core/out/database.h"

#include "core/out/utf8.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {

Database::Database() {
  if (sqlite3_open_v2(":memory:", &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK) fail();
}

Database::~Database() { sqlite3_close(db_); }

void Database::run(const char* sql) {
  if (ok() && sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void Database::fail() { fail(db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_)); }

void Database::fail(const std::string& message) {
  if (ok()) error_ = message;
}

Statement::Statement(Database& db, const std::string& sql) : db_(db) {
  if (db_.ok() && sqlite3_prepare_v2(db_.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) db_.fail();
}

Statement::~Statement() { sqlite3_finalize(statement_); }

// Returns the value that the caller must bind; null if it is NULL, and bound, or if there was an error.
template <class Type>
const Type* Statement::next(const char* column, const Value<Type>& value) {
  ++at_;
  if (!value.is_set()) db_.fail(std::string("column ") + column + " has no value");
  if (!db_.ok()) return nullptr;
  if (value.get() == nullptr) sqlite3_bind_null(statement_, at_);
  return value.get();
}

void Statement::bind(const char* column, const Integer& value) {
  if (const std::int64_t* const number = next(column, value)) sqlite3_bind_int64(statement_, at_, *number);
}

void Statement::bind(const char* column, const Real& value) {
  if (const double* const number = next(column, value)) sqlite3_bind_double(statement_, at_, *number);
}

void Statement::bind(const char* column, const Text& value) {
  const std::string* const bytes = next(column, value);
  if (bytes == nullptr) return;
  const std::string text = utf8(*bytes);
  sqlite3_bind_text(statement_, at_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void Statement::run() {
  at_ = 0;
  if (!db_.ok()) return;
  if (sqlite3_step(statement_) != SQLITE_DONE) db_.fail();
  sqlite3_reset(statement_);
}

}  // namespace commlens::out
