// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the pages of an SQLite file: B-trees that are filled once, in the order of their rows
// (docs/decisions/0045-small-profiles.md; the format: https://www.sqlite.org/fileformat2.html).

#include <cstdint>
#include <string>
#include <vector>

#include "core/out/records.h"

namespace commlens::out {

class Pages {
 public:
  explicit Pages(std::size_t page_size) : size_(page_size) { add_page(); }

  // Adds the tree of a table and returns the number of its root page.  pre: the rows are sorted.
  std::uint32_t add_tree(const Rows& rows);

  // Adds the schema, whose root is the first page, and the head of the file.  To be called last.
  void finish(const Rows& schema, std::uint32_t application_id, std::uint32_t user_version);

  // What a record of a table by number takes of a leaf, and what all on a leaf may take.
  std::size_t size_in_leaf(std::size_t record) const;
  std::size_t room_in_leaf() const;

  std::vector<unsigned char> take() { return std::move(bytes_); }

 private:
  // A page of a level, and what its cell in the level above has after the number of the page: the largest number in it,
  // or the row between it and the next page.
  struct Child {
    std::uint32_t page;
    std::string after;
  };
  class Filling;

  std::uint32_t add_page();
  unsigned char* page(std::uint32_t number) { return bytes_.data() + (number - 1) * size_; }
  std::string cell_of(const Rows& rows, std::size_t i);
  std::size_t part_in_page(std::size_t record, bool is_keyed) const;
  std::uint32_t add_overflow(std::string_view rest);
  std::vector<Child> leaves_of(const Rows& rows);
  void add_interior(std::uint32_t number, const std::vector<Child>& children, std::size_t first, std::size_t end,
                    bool is_keyed);
  static std::size_t end_of_page(const std::vector<Child>& children, std::size_t first, std::size_t room);
  std::uint32_t add_levels(std::vector<Child> children, bool is_keyed, std::uint32_t root);

  std::size_t size_;
  std::vector<unsigned char> bytes_;
};

}  // namespace commlens::out
