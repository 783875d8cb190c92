// SPDX-License-Identifier: Apache-2.0
// The three formats are described in CPython's Objects/lnotab_notes.txt and InternalDocs/code_objects.md.
#include "core/state/python_lines.h"

#include <cstddef>

namespace commlens::python {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) noexcept : bytes_(bytes) {}
  bool is_at_end() const noexcept { return at_ >= bytes_.size(); }
  std::uint8_t peek() const noexcept { return is_at_end() ? 0 : static_cast<std::uint8_t>(bytes_[at_]); }
  std::uint8_t next() noexcept {
    const std::uint8_t byte = peek();
    ++at_;
    return byte;
  }
  // Six bits a byte, the lowest first; the bit above them says that there are more.
  std::uint32_t number() noexcept {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 30; shift += 6) {
      const std::uint8_t byte = next();
      value |= static_cast<std::uint32_t>(byte & 63u) << shift;
      if ((byte & 64u) == 0) break;
    }
    return value;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Pairs of unsigned bytes forward and signed lines forward.
std::uint32_t by_lnotab(Bytes table, std::uint32_t line, std::uint64_t instruction) noexcept {
  std::uint64_t address = 0;
  while (!table.is_at_end()) {
    address += table.next();
    if (address > instruction) break;
    line += static_cast<std::uint32_t>(static_cast<std::int8_t>(table.next()));
  }
  return line;
}

// Pairs of the length of a range and the signed difference of its line to the one before; -128: it has no line.
std::uint32_t by_ranges(Bytes table, std::uint32_t first_line, std::uint64_t instruction) noexcept {
  std::uint64_t end = 0;
  std::uint32_t line = first_line;
  while (!table.is_at_end()) {
    end += table.next();
    const auto difference = static_cast<std::int8_t>(table.next());
    if (difference != -128) line += static_cast<std::uint32_t>(difference);
    if (instruction < end) return difference == -128 ? first_line : line;
  }
  return first_line;
}

// Entries that begin with a byte above 127: four bits of kind, three of length.
std::uint32_t by_locations(Bytes table, std::uint32_t first_line, std::uint64_t instruction) noexcept {
  constexpr unsigned no_line = 15, with_columns = 14, without_columns = 13, one_line = 10;
  constexpr std::uint64_t unit = 2;
  std::uint64_t end = 0;
  std::uint32_t line = first_line;
  while (!table.is_at_end()) {
    const std::uint8_t head = table.next();
    const unsigned kind = (head >> 3) & 15u;
    end += ((head & 7u) + 1) * unit;
    if (kind == with_columns || kind == without_columns) {
      const std::uint32_t number = table.number();
      line += (number & 1u) != 0 ? 0u - (number >> 1) : number >> 1;
    } else if (kind >= one_line && kind != no_line) {
      line += kind - one_line;
    }
    if (instruction < end) return kind == no_line ? first_line : line;
    while (!table.is_at_end() && (table.peek() & 128u) == 0) table.next();
  }
  return first_line;
}

}  // namespace

std::uint32_t line_at(Lines kind, std::string_view table, std::uint32_t first_line,
                      std::uint64_t instruction) noexcept {
  switch (kind) {
    case Lines::lnotab: return by_lnotab(Bytes(table), first_line, instruction);
    case Lines::ranges: return by_ranges(Bytes(table), first_line, instruction);
    case Lines::locations: break;
  }
  return by_locations(Bytes(table), first_line, instruction);
}

}  // namespace commlens::python
