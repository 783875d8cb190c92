// SPDX-License-Identifier: Apache-2.0
#include "core/out/pages.h"

#include <algorithm>
#include <cstring>

#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {
namespace {

enum : unsigned char { keyed_interior = 2, interior = 5, keyed_leaf = 10, leaf = 13 };
constexpr std::size_t file_head = 100, leaf_head = 8, interior_head = 12, pointer = 2, page_number = 4;

void put(unsigned char* at, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(number >> (8 * (bytes - 1 - i)));
}

void append_page(std::string& out, std::uint32_t page) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(page >> shift);
}

std::size_t head_of(std::uint32_t page) { return page == 1 ? file_head : 0; }

}  // namespace

// A page of a tree while it gets its cells, from its end on.
class Pages::Filling {
 public:
  Filling(std::size_t size, std::uint32_t number, unsigned char type) : bytes_(size), number_(number), end_(size) {
    bytes_[head_of(number)] = type;
    pointers_ = head_of(number) + (type == leaf || type == keyed_leaf ? leaf_head : interior_head);
  }
  bool has_room(std::size_t cell) const { return pointers_ + pointer + cell <= end_; }
  void add(const std::string& cell) {
    end_ -= cell.size();
    std::memcpy(&bytes_[end_], cell.data(), cell.size());
    put(&bytes_[pointers_], end_, pointer);
    pointers_ += pointer;
    ++cells_;
  }
  void remove_last(std::size_t size) {
    std::memset(&bytes_[end_], 0, size);
    end_ += size;
    pointers_ -= pointer;
    put(&bytes_[pointers_], 0, pointer);
    --cells_;
  }
  void set_right(std::uint32_t child) { put(&bytes_[head_of(number_) + leaf_head], child, 4); }
  void finish(unsigned char* page) {
    unsigned char* const head = &bytes_[head_of(number_)];
    put(head + 3, cells_, 2);
    put(head + 5, end_, 2);
    std::copy(bytes_.begin(), bytes_.end(), page);
  }

 private:
  std::vector<unsigned char> bytes_;
  std::uint32_t number_;
  std::size_t pointers_ = 0, end_, cells_ = 0;
};

// SQLite uses the page with the byte at 1 GiB for locks.
std::uint32_t Pages::add_page() {
  constexpr std::size_t locks = std::size_t{1} << 30;
  if (bytes_.size() == locks) bytes_.resize(bytes_.size() + size_);
  bytes_.resize(bytes_.size() + size_);
  return static_cast<std::uint32_t>(bytes_.size() / size_);
}

std::uint32_t Pages::add_overflow(std::string_view rest) {
  const std::size_t each = size_ - page_number;
  const std::uint32_t first = add_page();
  for (std::uint32_t number = first;;) {
    const std::string_view part = rest.substr(0, each);
    std::memcpy(page(number) + page_number, part.data(), part.size());
    rest.remove_prefix(part.size());
    if (rest.empty()) return first;
    const std::uint32_t next = add_page();
    put(page(number), next, 4);
    number = next;
  }
}

// Returns how much of a record is in the tree.  The rest continues on pages of its own.
std::size_t Pages::part_in_page(std::size_t record, bool is_keyed) const {
  const std::size_t most = is_keyed ? (size_ - 12) * 64 / 255 - 23 : size_ - 35;
  if (record <= most) return record;
  const std::size_t least = (size_ - 12) * 32 / 255 - 23;
  const std::size_t part = least + (record - least) % (size_ - page_number);
  return part <= most ? part : least;
}

std::size_t Pages::size_in_leaf(std::size_t record) const {
  constexpr std::size_t sizes_and_number = 3;
  const std::size_t part = part_in_page(record, false);
  return pointer + sizes_and_number + part + (part < record ? page_number : 0);
}

std::size_t Pages::room_in_leaf() const { return size_ - leaf_head; }

// Returns a row as a leaf has it.
std::string Pages::cell_of(const Rows& rows, std::size_t i) {
  constexpr std::size_t smallest = 4;
  const bool is_keyed = rows.shape().key_columns != 0;
  const std::string_view record = rows.record(i);
  std::string cell;
  put_varint(cell, record.size());
  if (!is_keyed) put_varint(cell, static_cast<std::uint64_t>(rows.number(i)));
  const std::size_t part = part_in_page(record.size(), is_keyed);
  cell.append(record.substr(0, part));
  if (part < record.size()) append_page(cell, add_overflow(record.substr(part)));
  cell.resize(std::max(cell.size(), smallest));
  return cell;
}

// Returns the pages with all rows.  In a tree by key, a row is on one page only: the one between two leaves is in the
// level above.
std::vector<Pages::Child> Pages::leaves_of(const Rows& rows) {
  const bool is_keyed = rows.shape().key_columns != 0;
  std::vector<Child> leaves;
  std::size_t at = 0;
  std::string cell = rows.count() == 0 ? std::string() : cell_of(rows, 0), before;
  do {
    const std::uint32_t number = add_page();
    Filling page_of(size_, number, is_keyed ? keyed_leaf : leaf);
    while (at < rows.count() && page_of.has_room(cell.size())) {
      page_of.add(cell);
      before.swap(cell);
      if (++at < rows.count()) cell = cell_of(rows, at);
    }
    Child child{number, {}};
    if (at < rows.count() && !is_keyed) put_varint(child.after, static_cast<std::uint64_t>(rows.number(at - 1)));
    if (at + 1 < rows.count() && is_keyed) {
      child.after = std::move(cell);
      cell = cell_of(rows, ++at);
    } else if (at + 1 == rows.count() && is_keyed) {  // no leaf is empty: the last but one goes up
      page_of.remove_last(before.size());
      child.after = before;
    }
    page_of.finish(page(number));
    leaves.push_back(std::move(child));
  } while (at < rows.count());
  return leaves;
}

// Adds the page above some children: all but the last have a cell.
void Pages::add_interior(std::uint32_t number, const std::vector<Child>& children, std::size_t first, std::size_t end,
                         bool is_keyed) {
  Filling page_of(size_, number, is_keyed ? keyed_interior : interior);
  for (std::size_t i = first; i + 1 < end; ++i) {
    std::string cell;
    append_page(cell, children[i].page);
    page_of.add(cell + children[i].after);
  }
  page_of.set_right(children[end - 1].page);
  page_of.finish(page(number));
}

// Returns where the children end that fit on a page from `first` on.  No page has one child only.
std::size_t Pages::end_of_page(const std::vector<Child>& children, std::size_t first, std::size_t room) {
  std::size_t end = first + 1;
  while (end < children.size()) {
    const std::size_t cell = pointer + page_number + children[end - 1].after.size();
    if (cell > room) break;
    room -= cell;
    ++end;
  }
  return end + 1 == children.size() ? end - 1 : end;
}

// Adds levels until one page, the root, is above all.  root: where it has to be; 0: anywhere.
std::uint32_t Pages::add_levels(std::vector<Child> children, bool is_keyed, std::uint32_t root) {
  while (children.size() > 1 || root != 0) {
    const std::size_t room = size_ - interior_head;
    if (end_of_page(children, 0, room - head_of(root)) == children.size()) {
      if (root == 0) root = add_page();
      add_interior(root, children, 0, children.size(), is_keyed);
      return root;
    }
    std::vector<Child> level;
    for (std::size_t first = 0; first < children.size();) {
      const std::size_t end = end_of_page(children, first, room);
      level.push_back({add_page(), std::move(children[end - 1].after)});
      add_interior(level.back().page, children, first, end, is_keyed);
      first = end;
    }
    children = std::move(level);
  }
  return children[0].page;
}

std::uint32_t Pages::add_tree(const Rows& rows) {
  return add_levels(leaves_of(rows), rows.shape().key_columns != 0, 0);
}

void Pages::finish(const Rows& schema, std::uint32_t application_id, std::uint32_t user_version) {
  add_levels(leaves_of(schema), false, 1);
  unsigned char* const head = page(1);
  constexpr char magic[] = "SQLite format 3";
  std::memcpy(head, magic, sizeof magic);
  put(head + 16, size_, 2);
  const unsigned char constants[] = {1, 1, 0, 64, 32, 32};  // journal, reserved bytes, shares of a page
  std::copy(std::begin(constants), std::end(constants), head + 18);
  constexpr std::uint64_t changes = 1, schema_format = 4, utf8_encoding = 1;
  put(head + 24, changes, 4);
  put(head + 28, bytes_.size() / size_, 4);
  put(head + 40, 1, 4);  // version of the schema
  put(head + 44, schema_format, 4);
  put(head + 56, utf8_encoding, 4);
  put(head + 60, user_version, 4);
  put(head + 68, application_id, 4);
  put(head + 92, changes, 4);
  put(head + 96, SQLITE_VERSION_NUMBER, 4);
}

}  // namespace commlens::out
