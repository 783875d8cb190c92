// SPDX-License-Identifier: Apache-2.0
#include "fuzz/arena/expand.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/arena/arena.h"
#include "core/arena/format.h"
#include "core/state/journal.h"

namespace commlens::fuzz {
namespace {

constexpr std::uint8_t end_of_arena = 0xff;
constexpr std::uint8_t says_used = 1;       // flags of an arena: `used` is as in the header, right or wrong
constexpr std::uint8_t wrong_check = 0x80;  // of an entry's kind
constexpr std::uint8_t wrong_size = 0x80;   // of a segment's kind: its bytes are as they stand
constexpr std::size_t most_bytes = 1 << 20, most_arenas = 4;

// Takes numbers and bytes from the front; zeros where there are no more.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::uint64_t number(int bytes) {
    std::uint64_t n = 0;
    for (int i = 0; i < bytes && at_ != end_; ++i) n |= std::uint64_t{*at_++} << 8 * i;
    return n;
  }
  std::string text(std::size_t wanted) {
    const std::size_t some = std::min<std::size_t>(wanted, static_cast<std::size_t>(end_ - at_));
    std::string t(reinterpret_cast<const char*>(at_), some);
    at_ += some;
    return t;
  }
  bool is_over() const { return at_ == end_; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

std::string entries_of(const std::string& content) {
  Source from(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  std::string entries;
  while (!from.is_over()) {
    const std::uint64_t kind = from.number(1);
    const std::string bytes = from.text(from.number(2));
    journal::EntryHead head{static_cast<journal::Entry>(kind & 0x7f), static_cast<std::uint32_t>(bytes.size()), 0};
    head.check = journal::check_of(head.entry, bytes.data(), bytes.size());
    if ((kind & wrong_check) != 0) head.check ^= 1;
    entries.append(reinterpret_cast<const char*>(&head), sizeof head);
    entries += bytes;
  }
  return entries;
}

// Adds one segment; false when there is no more room.
bool add_segment(Source& from, std::uint64_t kind, std::string& bytes,
                 std::vector<std::pair<std::uint64_t, std::uint64_t>>& data) {
  arena::SegmentHead head{};
  head.kind = static_cast<arena::Kind>(kind & 0x7f);
  head.number = static_cast<std::uint32_t>(from.number(1));
  head.bytes = from.number(4);
  std::string content = from.text(from.number(2));
  if (head.kind == arena::Kind::journal) {
    content = entries_of(content);
    head.filled.store(content.size());
  }
  std::uint64_t room = std::max<std::uint64_t>(content.size(), std::min<std::uint64_t>(head.bytes, most_bytes));
  room = (room + arena::alignment - 1) / arena::alignment * arena::alignment;
  if (bytes.size() + sizeof head + room > most_bytes) return false;
  if ((kind & wrong_size) == 0) head.bytes = room;
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += content;
  data.back().second = bytes.size();
  bytes.append(room - content.size(), '\0');
  data.emplace_back(bytes.size(), bytes.size());
  return true;
}

Expanded one_of(Source& from) {
  const std::uint64_t flags = from.number(1);
  std::string bytes(arena::header_bytes, '\0');
  const std::string header = from.text(from.number(2));
  constexpr std::size_t first = offsetof(arena::Header, process);
  header.copy(&bytes[first], sizeof(arena::Header) - first);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data{{0, bytes.size()}};
  for (std::uint64_t kind; !from.is_over() && (kind = from.number(1)) != end_of_arena;) {
    if (!add_segment(from, kind, bytes, data)) break;
  }
  Expanded result;
  result.memory.reset(static_cast<char*>(std::aligned_alloc(arena::alignment, bytes.size())));
  std::memcpy(result.memory.get(), bytes.data(), bytes.size());
  auto* const head = reinterpret_cast<arena::Header*>(result.memory.get());
  std::memcpy(head->magic, arena::magic, sizeof head->magic);
  head->version = arena::version;
  head->header_bytes = arena::header_bytes;
  head->layout = arena::layout();
  if ((flags & says_used) == 0) head->used.store(bytes.size());
  while (!data.empty() && data.back().first == data.back().second) data.pop_back();
  result.content = {result.memory.get(), bytes.size(), std::move(data)};
  return result;
}

}  // namespace

void Expanded::Free::operator()(char* memory) const { std::free(memory); }

std::vector<Expanded> expanded(const std::uint8_t* data, std::size_t size) {
  Source from(data, size);
  std::vector<Expanded> all;
  while (!from.is_over() && all.size() < most_arenas) all.push_back(one_of(from));
  return all;
}

}  // namespace commlens::fuzz
