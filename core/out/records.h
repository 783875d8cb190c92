// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows in the form in which an SQLite file stores them (https://www.sqlite.org/fileformat2.html).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/out/values.h"

namespace commlens::out {

// How the rows of a table are found.
struct TableShape {
  const char* name;
  int number;       // of the table within the schema
  int key_columns;  // the rows are in the order of so many first columns (WITHOUT ROWID); 0: of a number
  int row_number;   // the column with that number; -1: the rows are counted
};

// Append to `out` what SQLite calls a varint: 7 bits a byte, the highest ones first.
void put_varint(std::string& out, std::uint64_t number);
// Reads a varint and moves `at` behind it.
std::uint64_t take_varint(const char*& at);

// One row, built value by value.
class Record {
 public:
  void add(const std::int64_t* number);  // null: NULL
  void add(const double* number);
  void add(const std::string* text);
  void clear();
  void append_to(std::string& out) const;
  std::size_t size() const;

 private:
  std::string types_, body_;
};

// Compares the first `columns` values of two records: NULL, numbers, texts, as SQLite orders them.  Keys contain no
// fractions.
int compare_records(const char* left, const char* right, int columns);

// The rows of one table, sorted by its key.
class Rows {
 public:
  explicit Rows(const TableShape& shape) : shape_(shape) {}

  // number: of the row, unless the table is ordered by its columns.
  void add(std::int64_t number, const Record& record);
  // Sorts the rows.  skip_equal: of rows with the same key the first one counts; else returns false if there are any.
  bool sort(bool skip_equal);

  const TableShape& shape() const { return shape_; }
  std::size_t count() const { return starts_.size(); }
  std::size_t bytes() const { return bytes_.size(); }
  std::int64_t number(std::size_t i) const;
  std::string_view record(std::size_t i) const;
  void clear();

 private:
  int compare(std::size_t i, std::size_t j) const;  // positions in bytes_

  TableShape shape_;
  std::string bytes_;                // of each row its number, if it has one, the size of its record, and the record
  std::vector<std::size_t> starts_;  // where each row begins in bytes_
  bool is_sorted_ = true;
};

}  // namespace commlens::out
