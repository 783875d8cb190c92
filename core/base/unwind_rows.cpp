// SPDX-License-Identifier: Apache-2.0
#include "core/base/unwind_rows.h"

namespace commlens {
namespace {

// DW_EH_PE_*: the low four bits of a pointer's encoding are its format, the others what it is relative to.
enum : std::uint8_t {
  format_mask = 0x0f,
  format_absptr = 0x00,
  format_udata4 = 0x03,
  format_udata8 = 0x04,
  format_sdata4 = 0x0b,
  format_sdata8 = 0x0c,
  relative_to_itself = 0x10,
  relative_to_header = 0x30,
};

// Reads the number of an encoded pointer.
std::uint64_t encoded_number(DwarfCursor& cursor, std::uint8_t encoding) noexcept {
  switch (encoding & format_mask) {
    case format_absptr:
    case format_udata8:
    case format_sdata8: return cursor.number<std::uint64_t>();
    case format_udata4: return cursor.number<std::uint32_t>();
    case format_sdata4: return static_cast<std::uint64_t>(std::int64_t{cursor.number<std::int32_t>()});
    default: cursor.fail(); return 0;
  }
}

std::uint64_t encoded_pointer(DwarfCursor& cursor, std::uint8_t encoding) noexcept {
  const std::uint64_t at = cursor.address(), number = encoded_number(cursor, encoding);
  switch (encoding & ~unsigned{format_mask}) {
    case 0: return number;
    case relative_to_itself: return at + number;
    default: cursor.fail(); return 0;
  }
}

// Common information entry: what the entries of many functions share.
struct Cie {
  std::uint64_t code_alignment = 0;
  std::uint64_t data_alignment = 0;  // two's complement
  std::uint8_t encoding = format_absptr;
  bool has_augmentation_data = false;
  DwarfCursor program;
};

// The executor of the instructions of a CIE, then of a function's own, up to the row of one address.
class RowProgram {
 public:
  RowProgram(const Cie& cie, std::uint64_t location, std::uint64_t instruction) noexcept
      : cie_(cie), location_(location), instruction_(instruction) {}

  bool run(DwarfCursor own, UnwindRow& row) noexcept {
    DwarfCursor shared = cie_.program;
    while (!shared.is_at_end()) execute(shared);
    if (!shared.is_good() || is_behind_) return false;
    initial_ = row_;
    while (!own.is_at_end() && !is_behind_) execute(own);
    row = row_;
    return own.is_good();
  }

 private:
  static constexpr int most_remembered = 4;  // compilers nest no states

  void move_to(std::uint64_t location) noexcept {
    location_ = location;
    is_behind_ = location > instruction_;
  }

  void advance(std::uint64_t units) noexcept { move_to(location_ + units * cie_.code_alignment); }

  void set(std::uint64_t reg, const RegisterRule& rule) noexcept {
    if (reg == dwarf_fp) row_.fp = rule;
    if (reg == dwarf_return) row_.return_address = rule;
  }

  void set(std::uint64_t reg, RegisterRule::Kind kind) noexcept { set(reg, RegisterRule{kind, 0, {}}); }

  // The offset is a multiple of the data alignment.
  void set_offset(std::uint64_t reg, std::uint64_t units) noexcept {
    set(reg, RegisterRule{RegisterRule::offset, units * cie_.data_alignment, {}});
  }

  void restore(std::uint64_t reg) noexcept {
    if (reg == dwarf_fp) row_.fp = initial_.fp;
    if (reg == dwarf_return) row_.return_address = initial_.return_address;
  }

  void remember_row(DwarfCursor& code) noexcept {
    if (remembered_ == most_remembered) return code.fail();
    stack_[remembered_++] = row_;
  }

  void restore_row(DwarfCursor& code) noexcept {
    if (remembered_ == 0) return code.fail();
    row_ = stack_[--remembered_];
  }

  void execute(DwarfCursor& code) noexcept {
    const auto byte = code.number<std::uint8_t>();
    const std::uint64_t low = byte & 0x3f;
    switch (byte >> 6) {
      case 0: return execute_extended(code, byte);
      case 1: return advance(low);                  // DW_CFA_advance_loc
      case 2: return set_offset(low, code.uleb());  // DW_CFA_offset
      default: return restore(low);                 // DW_CFA_restore
    }
  }

  void execute_extended(DwarfCursor& code, std::uint8_t operation) noexcept {
    switch (operation) {
      case 0x00: return;                                                // DW_CFA_nop
      case 0x01: return move_to(encoded_pointer(code, cie_.encoding));  // DW_CFA_set_loc
      case 0x02: return advance(code.number<std::uint8_t>());           // DW_CFA_advance_loc1
      case 0x03: return advance(code.number<std::uint16_t>());          // DW_CFA_advance_loc2
      case 0x04: return advance(code.number<std::uint32_t>());          // DW_CFA_advance_loc4
      case 0x0a: return remember_row(code);                             // DW_CFA_remember_state
      case 0x0b: return restore_row(code);                              // DW_CFA_restore_state
#if defined(COMMLENS_AARCH64)
      case 0x2d: return;  // DW_CFA_AARCH64_negate_ra_state: the unwinder strips signatures where there are none, too
#endif
      case 0x2e: code.uleb(); return;  // DW_CFA_GNU_args_size
      default: break;
    }
    if (operation >= 0x0c && operation <= 0x13 && operation != 0x10 && operation != 0x11) {
      return execute_cfa(code, operation);
    }
    execute_register(code, operation);
  }

  void execute_cfa(DwarfCursor& code, std::uint8_t operation) noexcept {
    CfaRule& cfa = row_.cfa;
    const std::uint64_t unit = cie_.data_alignment;
    switch (operation) {
      case 0x0c:  // DW_CFA_def_cfa
        cfa.reg = code.uleb();
        cfa.offset = code.uleb();
        break;
      case 0x0d: cfa.reg = code.uleb(); break;     // DW_CFA_def_cfa_register
      case 0x0e: cfa.offset = code.uleb(); break;  // DW_CFA_def_cfa_offset
      case 0x12:                                   // DW_CFA_def_cfa_sf
        cfa.reg = code.uleb();
        cfa.offset = static_cast<std::uint64_t>(code.sleb()) * unit;
        break;
      case 0x13: cfa.offset = static_cast<std::uint64_t>(code.sleb()) * unit; break;  // DW_CFA_def_cfa_offset_sf
      default: cfa.code = code.part(code.uleb()); break;                              // DW_CFA_def_cfa_expression
    }
    const bool sets_register = operation == 0x0c || operation == 0x0d || operation == 0x12;
    if (operation == 0x0f) {
      cfa.is_expression = true;
    } else if (sets_register) {
      cfa.is_expression = false;
    } else if (cfa.is_expression) {
      code.fail();  // an offset without a register
    }
  }

  void execute_register(DwarfCursor& code, std::uint8_t operation) noexcept {
    const std::uint64_t reg = code.uleb();
    switch (operation) {
      case 0x05: return set_offset(reg, code.uleb());       // DW_CFA_offset_extended
      case 0x06: return restore(reg);                       // DW_CFA_restore_extended
      case 0x07: return set(reg, RegisterRule::undefined);  // DW_CFA_undefined
      case 0x08: return set(reg, RegisterRule::same);       // DW_CFA_same_value
      case 0x10: {                                          // DW_CFA_expression
        const std::uint64_t bytes = code.uleb();
        return set(reg, RegisterRule{RegisterRule::expression, 0, code.part(bytes)});
      }
      case 0x11: return set_offset(reg, static_cast<std::uint64_t>(code.sleb()));  // DW_CFA_offset_extended_sf
      case 0x09:                                                                   // DW_CFA_register
      case 0x14: code.uleb(); return set(reg, RegisterRule::unknown);              // DW_CFA_val_offset
      case 0x15: code.sleb(); return set(reg, RegisterRule::unknown);              // DW_CFA_val_offset_sf
      case 0x16: code.skip(code.uleb()); return set(reg, RegisterRule::unknown);   // DW_CFA_val_expression
      case 0x2f: return set_offset(reg, -code.uleb());  // DW_CFA_GNU_negative_offset_extended
      default: code.fail();
    }
  }

  const Cie& cie_;
  std::uint64_t location_;
  const std::uint64_t instruction_;
  UnwindRow row_, initial_;
  UnwindRow stack_[most_remembered];
  int remembered_ = 0;
  bool is_behind_ = false;
};

// Returns the content of the entry (CIE or FDE) at an address, from its id on.
DwarfCursor entry_at(const UnwindTables& tables, std::uint64_t address) noexcept {
  const auto begin = reinterpret_cast<std::uint64_t>(tables.begin);
  DwarfCursor cursor{tables.begin, tables.end};
  cursor.skip(address - begin);
  const auto length = cursor.number<std::uint32_t>();
  if (length == 0xffffffff) cursor.fail();  // 64-bit DWARF
  return cursor.part(length);
}

void skip_personality(DwarfCursor& cursor) noexcept {
  const auto encoding = cursor.number<std::uint8_t>();
  constexpr std::uint8_t aligned = 0x50, indirect = 0x80;
  if ((encoding & ~unsigned{format_mask} & ~unsigned{indirect}) == aligned) cursor.fail();
  encoded_number(cursor, encoding);
}

bool read_cie(const UnwindTables& tables, std::uint64_t address, Cie& cie) noexcept {
  DwarfCursor entry = entry_at(tables, address);
  if (entry.number<std::uint32_t>() != 0) return false;  // not a CIE
  const auto version = entry.number<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  constexpr int longest = 8;
  char augmentation[longest] = "";
  for (int i = 0; (augmentation[i] = static_cast<char>(entry.number<std::uint8_t>())) != '\0';) {
    if (++i == longest) return false;
  }
  cie.code_alignment = entry.uleb();
  cie.data_alignment = static_cast<std::uint64_t>(entry.sleb());
  if ((version == 1 ? entry.number<std::uint8_t>() : entry.uleb()) != dwarf_return) return false;
  if (augmentation[0] == 'z') {
    cie.has_augmentation_data = true;
    DwarfCursor data = entry.part(entry.uleb());
    for (const char* c = augmentation + 1; *c != '\0'; ++c) {
      switch (*c) {
        case 'R': cie.encoding = data.number<std::uint8_t>(); break;
        case 'P': skip_personality(data); break;
        case 'L': data.number<std::uint8_t>(); break;
        case 'B': break;
        default: return false;  // S, a signal frame: the caller did not make a call
      }
    }
    if (!data.is_good()) return false;
  } else if (augmentation[0] != '\0') {
    return false;
  }
  cie.program = entry;
  return entry.is_good();
}

// Reads the frame description entry, that of one function.
bool read_fde(const UnwindTables& tables, std::uint64_t address, std::uint64_t instruction, UnwindRow& row) noexcept {
  DwarfCursor entry = entry_at(tables, address);
  const std::uint64_t id_at = entry.address();
  const auto distance = entry.number<std::uint32_t>();
  Cie cie;
  if (!entry.is_good() || !read_cie(tables, id_at - distance, cie)) return false;
  const std::uint64_t first = encoded_pointer(entry, cie.encoding);
  const std::uint64_t length = encoded_number(entry, cie.encoding & format_mask);
  if (!entry.is_good() || instruction - first >= length) return false;
  if (cie.has_augmentation_data) entry.skip(entry.uleb());
  return entry.is_good() && RowProgram(cie, first, instruction).run(entry, row);
}

struct TableRow {
  std::int32_t function, fde;  // relative to the header
};

}  // namespace

bool find_row(const UnwindTables& tables, std::uint64_t instruction, UnwindRow& row) noexcept {
  DwarfCursor header{tables.header, tables.end};
  const auto version = header.number<std::uint8_t>(), section_encoding = header.number<std::uint8_t>(),
             count_encoding = header.number<std::uint8_t>(), table_encoding = header.number<std::uint8_t>();
  // The encodings that all linkers write.
  if (version != 1 || section_encoding != (relative_to_itself | format_sdata4) || count_encoding != format_udata4 ||
      table_encoding != (relative_to_header | format_sdata4)) {
    return false;
  }
  header.skip(sizeof(std::int32_t));  // the address of .eh_frame
  const auto count = header.number<std::uint32_t>();
  const std::uint64_t table = header.address();
  header.skip(std::uint64_t{count} * sizeof(TableRow));
  if (!header.is_good() || count == 0) return false;

  const auto origin = reinterpret_cast<std::uint64_t>(tables.header);
  const auto row_at = [&](std::uint32_t index) {
    TableRow result;
    std::memcpy(&result, reinterpret_cast<const std::uint8_t*>(table) + index * sizeof result, sizeof result);
    return result;
  };
  const auto wanted = static_cast<std::int64_t>(instruction - origin);
  std::uint32_t low = 0, high = count;  // the last function that begins at or before the instruction
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (row_at(middle).function <= wanted ? low : high) = middle;
  }
  return read_fde(tables, origin + static_cast<std::uint64_t>(std::int64_t{row_at(low).fde}), instruction, row);
}

}  // namespace commlens
