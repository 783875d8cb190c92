// SPDX-License-Identifier: Apache-2.0
#include "core/out/findings.h"

#include <cmath>
#include <cstdio>
#include <map>

#include "generated/findings.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {

namespace {

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  return text;
}

// A column of the query's row, not yet formatted; no text: NULL.
struct Field {
  bool is_null = true;
  double number = 0;
  std::string text;
};
using Fields = std::map<std::string, Field>;

Fields fields_of(sqlite3_stmt* row) {
  Fields fields;
  for (int i = 0; i < sqlite3_column_count(row); ++i) {
    Field& field = fields[sqlite3_column_name(row, i)];
    field.is_null = sqlite3_column_type(row, i) == SQLITE_NULL;
    field.number = sqlite3_column_double(row, i);
    const unsigned char* const text = sqlite3_column_text(row, i);
    if (text != nullptr) field.text = reinterpret_cast<const char*>(text);
  }
  // Names of call sites need the debug information of the application, which only the reader looks for.
  fields["site"].is_null = true;
  return fields;
}

std::string count_text(double number) {
  std::string digits = std::to_string(std::llround(number));
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

// Returns the text of a field, given as "name" or "name:format".
std::string formatted(const std::string& reference, const Fields& fields) {
  const std::size_t colon = reference.find(':');
  const auto found = fields.find(reference.substr(0, colon));
  if (found == fields.end()) return "?";
  const std::string format = colon == std::string::npos ? "" : reference.substr(colon + 1);
  const double number = found->second.number;
  if (format == "time") return time_text(static_cast<Ns>(std::nearbyint(number)));
  if (format == "share") return share_text(number);
  if (format == "count") return count_text(number);
  return found->second.text;
}

// Returns the text with the fields in place of their names in braces.  is_complete: whether none of them is NULL.
std::string filled(const std::string& text, const Fields& fields, bool& is_complete) {
  std::string result;
  is_complete = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      result += text[i];
      continue;
    }
    const std::string reference = text.substr(i + 1, end - i - 1);
    const auto found = fields.find(reference.substr(0, reference.find(':')));
    if (found == fields.end() || found->second.is_null) is_complete = false;
    result += formatted(reference, fields);
    i = end;
  }
  return result;
}

// Returns the sentence of a rule.  A part in brackets is left out if one of its fields is NULL.
std::string sentence(const std::string& text, const Fields& fields) {
  std::string result;
  bool is_complete;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t open = text.find('[', i), close = text.find(']', i);
    result += filled(text.substr(i, open - i), fields, is_complete);
    if (open == std::string::npos || close == std::string::npos) break;
    const std::string part = filled(text.substr(open + 1, close - open - 1), fields, is_complete);
    if (is_complete) result += part;
    i = close + 1;
  }
  return result;
}

}  // namespace

std::string time_text(Ns ns) {
  static constexpr struct {
    Ns scale;
    const char* unit;
  } units[] = {{1'000, "µs"}, {1'000'000, "ms"}, {1'000'000'000, "s"}};
  if (ns < 1'000) return std::to_string(ns) + " ns";
  for (const auto& [scale, unit] : units) {
    const double value = static_cast<double>(ns) / static_cast<double>(scale);
    if (value < 999.5 || scale == 1'000'000'000) return three_digits(value) + " " + unit;
  }
  return "";
}

std::string share_text(double share) {
  if (share == 0) return "0 %";
  if (share < 0.0005) return "<0.1 %";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string first_finding(std::vector<unsigned char>& file) {
  sqlite3* db = nullptr;
  std::string best;
  const auto size = static_cast<sqlite3_int64>(file.size());
  if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      sqlite3_deserialize(db, "main", file.data(), size, size, SQLITE_DESERIALIZE_READONLY) == SQLITE_OK) {
    best = first_finding(db);
  }
  sqlite3_close(db);
  return best;
}

std::string first_finding(sqlite3* db) {
  // Most of the search is preparing the queries.  With tables in place of views that takes a third.
  for (const std::string view : finding_views) {
    const std::string sql = "CREATE TEMP TABLE " + view + " AS SELECT * FROM main." + view;
    sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);  // without it, the rules that use it find nothing
  }
  double most = -1;
  std::string best;
  for (const FindingRule& rule : finding_rules) {
    sqlite3_stmt* row = nullptr;
    if (sqlite3_prepare_v2(db, rule.query, -1, &row, nullptr) == SQLITE_OK) {
      while (sqlite3_step(row) == SQLITE_ROW) {
        const Fields fields = fields_of(row);
        const double share = fields.at("share").number;
        if (share <= most) continue;
        most = share;
        best = sentence(rule.text, fields);
      }
    }
    sqlite3_finalize(row);
  }
  return best;
}

}  // namespace commlens::out
