// SPDX-License-Identifier: Apache-2.0
#include "core/out/database.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/out/pages.h"
#include "generated/schema_rows.h"
#include "generated/schema_sql.h"

namespace commlens::out {
namespace {

// The table of all tables and views, which every SQLite file begins with.
constexpr TableShape schema_shape{"sqlite_schema", -1, 0, -1};

// What creates a table or view.
struct Created {
  std::string type, name, sql;
  std::int64_t root;  // page; 0: a view
};

// Appends what some statements create.  `root` returns the root page of the next one.
template <class Root>
void add_created(std::vector<Created>& all, std::string_view text, const std::string& type, Root root) {
  const std::string create = type == "table" ? "CREATE TABLE " : "CREATE VIEW ", between = ";\n" + create;
  for (std::size_t at = text.find(create); at < text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size() - 2);  // the last one ends with ;\n, too
    const std::string sql(text.substr(at, end - at));
    const std::size_t name = create.size();
    all.push_back({type, sql.substr(name, sql.find_first_of(" (\n", name) - name), sql, root()});
    at = end + 2;
  }
}

// Returns the rows of the schema.  A long statement leaves a part of a small page free, so these rows are in the order
// in which they fill the pages best: the longest first, each on the first page with room for it.
Rows schema_rows(const std::vector<Created>& all, const Pages& pages) {
  std::vector<Record> records;
  std::vector<std::size_t> sizes, order(all.size());
  for (const Created& c : all) {
    Record record;
    for (const std::string* const text : {&c.type, &c.name, &c.name}) record.add(text);
    record.add(&c.root);
    record.add(&c.sql);
    sizes.push_back(pages.size_in_leaf(record.size()));
    records.push_back(std::move(record));
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return sizes[i] > sizes[j]; });
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> filled;  // bytes that are free, rows
  for (const std::size_t i : order) {
    const auto has_room = [&](const auto& page) { return page.first >= sizes[i]; };
    auto page = std::find_if(filled.begin(), filled.end(), has_room);
    if (page == filled.end()) page = filled.insert(page, {pages.room_in_leaf(), {}});
    page->first -= std::min(page->first, sizes[i]);
    page->second.push_back(i);
  }
  Rows schema(schema_shape);
  for (const auto& [room, on_page] : filled) {
    for (const std::size_t i : on_page) schema.add(static_cast<std::int64_t>(schema.count() + 1), records[i]);
  }
  return schema;
}

}  // namespace

Database::Database() : tables_(std::begin(rows::shapes), std::end(rows::shapes)), skips_equal_(tables_.size()) {}

void Database::fail(const std::string& message) {
  if (ok()) error_ = message;
}

std::size_t Database::bytes() const {
  std::size_t sum = 0;
  for (const Rows& table : tables_) sum += table.bytes();
  return sum;
}

std::vector<unsigned char> Database::image(std::size_t page_size, const SchemaText& text) {
  Pages pages(page_size);
  std::vector<Created> all;
  std::size_t number = 0;
  add_created(all, text.has_comments ? tables_sql : bare_tables_sql, "table", [&]() -> std::int64_t {
    Rows& table = tables_[number];
    if (!table.sort(skips_equal_[number++])) fail(std::string("two rows of ") + table.shape().name + " are the same");
    const std::uint32_t root = pages.add_tree(table);
    table.clear();
    return root;
  });
  if (text.has_views) {
    add_created(all, text.has_comments ? views_sql : bare_views_sql, "view", []() -> std::int64_t { return 0; });
  }
  pages.finish(schema_rows(all, pages), application_id, schema_version);
  return ok() ? pages.take() : std::vector<unsigned char>();
}

}  // namespace commlens::out
