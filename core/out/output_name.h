// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace commlens::out {

// The values of the fields of COMMLENS_OUTPUT.
struct NameFields {
  std::string program;  // %p
  std::string host;     // %h
  std::string job;      // %j
  int ranks = 0;        // %n
  std::string user;     // %u
  std::string date;     // YYYYMMDD; %Y, %m, %d
};

// Replaces the fields in `pattern`.  An unknown field stays as it is.  Slashes inside a value become '_'.
std::string output_name(const std::string& pattern, const NameFields& fields);

// Returns the length of the beginning of `pattern`, up to a slash, that is the folder which must exist: the folders
// below it are named by fields.  npos: no folder is.
std::size_t root_length(const std::string& pattern);

// Returns the last part of a path.
std::string base_name(const std::string& path);

// Inserts `mark` before the ending: "a.db" and ".1" give "a.1.db".
std::string marked_name(const std::string& name, const std::string& mark);

// Returns the n-th name to try if the first exists: "a.db" gives "a.1.db", "a.2.db", ...
std::string numbered_name(const std::string& name, int n);

}  // namespace commlens::out
