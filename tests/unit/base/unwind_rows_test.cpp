// SPDX-License-Identifier: Apache-2.0
#include "core/base/unwind_rows.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/base/unwind_walk.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The registers, and the instructions and operations that have a register in their number.
constexpr std::uint8_t fp = dwarf_fp, sp = dwarf_sp, ra = dwarf_return;
constexpr std::uint8_t offset_fp = 0x80 + fp, offset_ra = 0x80 + ra, restore_fp = 0xc0 + fp;
constexpr std::uint8_t breg_fp = 0x70 + fp, breg_sp = 0x70 + sp, breg_ra = 0x70 + ra;

constexpr std::int32_t function = 0x1000, function_length = 0x100;  // as far behind the header

// Tables of one function, with the instructions of its description.
class OneFunction {
 public:
  explicit OneFunction(const Bytes& program, const std::string& augmentation = "zR", const Bytes& data = {0x1b}) {
    add({1, 0x1b, 0x03, 0x3b});
    add32(0);  // the address of .eh_frame is not used
    add32(1);
    add32(function);
    const std::size_t fde_in_table = bytes.size();
    add32(0);
    const std::size_t cie = begin_entry();
    add32(0);
    add({1});
    for (const char c : augmentation) add({static_cast<std::uint8_t>(c)});
    add({0, 1, 0x78, ra});  // end of the text, code alignment 1, data alignment -8, return address in its column
    add({static_cast<std::uint8_t>(data.size())});
    add(data);
    add({0x0c, sp, 8, offset_ra, 1});  // CFA sp + 8, return address at CFA - 8
    end_entry(cie);
    const std::size_t fde = begin_entry();
    add32(static_cast<std::int32_t>(bytes.size() - cie));
    add32(function - static_cast<std::int32_t>(bytes.size()));
    add32(function_length);
    add({0});  // no augmentation data
    add(program);
    end_entry(fde);
    const auto position = static_cast<std::int32_t>(fde);
    std::memcpy(&bytes[fde_in_table], &position, sizeof position);
  }

  UnwindTables tables() const {
    UnwindTables result;
    result.first = start();
    result.behind = start() + function_length;
    result.header = result.begin = bytes.data();
    result.end = bytes.data() + bytes.size();
    return result;
  }

  // Of the function
  std::uint64_t start() const { return reinterpret_cast<std::uint64_t>(bytes.data()) + function; }

  Bytes bytes;

 private:
  void add(const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }
  void add32(std::int32_t number) {
    Bytes more(sizeof number);
    std::memcpy(more.data(), &number, sizeof number);
    add(more);
  }
  std::size_t begin_entry() {
    add32(0);
    return bytes.size() - 4;
  }
  void end_entry(std::size_t entry) {
    const auto length = static_cast<std::uint32_t>(bytes.size() - entry - 4);
    std::memcpy(&bytes[entry], &length, sizeof length);
  }
};

std::string text_of(const RegisterRule& rule) {
  const auto number = std::to_string(static_cast<std::int64_t>(rule.offset_from_cfa));
  switch (rule.kind) {
    case RegisterRule::same: return "same";
    case RegisterRule::offset: return number;
    case RegisterRule::expression: return "expression";
    case RegisterRule::undefined: return "undefined";
    default: return "unknown";
  }
}

std::string text_of(const UnwindRow& row) {
  const std::string cfa = row.cfa.is_expression ? "expression"
                                                : (row.cfa.reg == sp   ? "sp+"
                                                   : row.cfa.reg == fp ? "fp+"
                                                                       : "other+") +
                                                      std::to_string(static_cast<std::int64_t>(row.cfa.offset));
  return cfa + " " + text_of(row.fp) + " " + text_of(row.return_address);
}

// CFA, frame pointer and return address at the 32nd byte of the function
std::string row_of(const Bytes& program) {
  const OneFunction f(program);
  UnwindRow row;
  return find_row(f.tables(), f.start() + 32, row) ? text_of(row) : "none";
}

}  // namespace

TEST(instructions_set_rows) {
  CHECK_EQ(row_of({}), "sp+8 same -8");
  CHECK_EQ(row_of({0x0e, 16, offset_fp, 2}), "sp+16 -16 -8");                   // push the frame pointer
  CHECK_EQ(row_of({0x0e, 16, offset_fp, 2, 0x0d, fp}), "fp+16 -16 -8");         // move sp to it
  CHECK_EQ(row_of({0x0c, fp, 0x90, 1, 0x8c, 3}), "fp+144 same -8");             // a register that does not matter
  CHECK_EQ(row_of({0x12, sp, 0x7e, 0x13, 0x7d}), "sp+24 same -8");              // factored, signed
  CHECK_EQ(row_of({0x05, fp, 3, 0x11, ra, 0x7f}), "sp+8 -24 8");                // extended, then signed
  CHECK_EQ(row_of({0x2f, fp, 2, 0x2e, 8}), "sp+8 16 -8");                       // GNU's
  CHECK_EQ(row_of({offset_fp, 2, 0x08, fp, 0x07, ra}), "sp+8 same undefined");  // same_value, undefined
  CHECK_EQ(row_of({0x09, fp, 3}), "sp+8 unknown -8");                           // register
  CHECK_EQ(row_of({0x14, fp, 3, 0x15, ra, 3}), "sp+8 unknown unknown");         // val_offset
  CHECK_EQ(row_of({0x16, fp, 1, 0x30, 0x0f, 2, breg_fp, 8}), "expression unknown -8");  // val_expression
  CHECK_EQ(row_of({0x10, fp, 2, breg_fp, 0, 0x0c, sp, 8}), "sp+8 expression -8");
  CHECK_EQ(row_of({offset_fp, 2, restore_fp}), "sp+8 same -8");  // restore
  CHECK_EQ(row_of({0x07, ra, 0x06, ra}), "sp+8 same -8");
  CHECK_EQ(row_of({0x0e, 16, 0x0a, 0x0e, 24, offset_fp, 3, 0x0b}), "sp+16 same -8");  // remember, restore the row
}

TEST(instructions_behind_the_address_do_not_count) {
  CHECK_EQ(row_of({0x60, 0x0e, 16}), "sp+16 same -8");                         // 32 bytes on
  CHECK_EQ(row_of({0x61, 0x0e, 16}), "sp+8 same -8");                          // 33
  CHECK_EQ(row_of({0x02, 32, 0x0e, 16, 0x02, 1, 0x0e, 24}), "sp+16 same -8");  // one byte each
  CHECK_EQ(row_of({0x03, 32, 0, 0x0e, 16, 0x03, 1, 0, 0x0e, 24}), "sp+16 same -8");
  CHECK_EQ(row_of({0x04, 32, 0, 0, 0, 0x0e, 16, 0x04, 1, 0, 0, 0, 0x0e, 24}), "sp+16 same -8");
}

TEST(programs_that_cannot_be_executed_have_no_row) {
  CHECK_EQ(row_of({0x0b}), "none");                                // restores what was not remembered
  CHECK_EQ(row_of({0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a}), "none");  // remembers too much
  CHECK_EQ(row_of({0x3f}), "none");                                // no such instruction
  CHECK_EQ(row_of({0x0e}), "none");                                // ends within an instruction
  CHECK_EQ(row_of({0x0e, 0x80, 0x80}), "none");
  CHECK_EQ(row_of({0x0f, 9, breg_fp}), "none");         // an expression that is longer than the program
  CHECK_EQ(row_of({0x0f, 1, 0x30, 0x0e, 16}), "none");  // an offset from no register
}

TEST(only_addresses_in_the_function_have_a_row) {
  const OneFunction f({});
  UnwindRow row;
  CHECK(find_row(f.tables(), f.start(), row));
  CHECK(find_row(f.tables(), f.start() + function_length - 1, row));
  CHECK(!find_row(f.tables(), f.start() + function_length, row));
  CHECK(!find_row(f.tables(), f.start() - 1, row));
}

TEST(tables_that_end_early_have_no_row) {
  const OneFunction f({0x0e, 16});
  for (std::size_t bytes = 0; bytes < f.bytes.size(); ++bytes) {
    UnwindTables tables = f.tables();
    const Bytes copy(f.bytes.begin(), f.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
    tables.header = tables.begin = copy.data();
    tables.end = copy.data() + bytes;
    UnwindRow row;
    CHECK(!find_row(tables, reinterpret_cast<std::uint64_t>(copy.data()) + function + 32, row));
  }
}

TEST(of_augmentations_only_those_are_read_that_compilers_write_for_calls) {
  const auto has_row = [](const std::string& augmentation, const Bytes& data) {
    const OneFunction f({}, augmentation, data);
    UnwindRow row;
    return find_row(f.tables(), f.start(), row);
  };
  CHECK(has_row("zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0x1b}));  // personality, language-specific data
  CHECK(has_row("zRB", {0x1b}));
  CHECK(!has_row("zRS", {0x1b}));                           // signal frame
  CHECK(!has_row("zPLR", {0x50, 1, 2, 3, 4, 0x1b, 0x1b}));  // aligned
  CHECK(!has_row("zR", {}));                                // no data
  CHECK(!has_row("zX", {0x1b}));
  CHECK(!has_row("zR", {0x3b}));  // relative to what is not known
}

namespace {

const OneFunction* current;

bool find_current(std::uint64_t pc, UnwindTables& tables) {
  tables = current->tables();
  return pc >= tables.first && pc < tables.behind;
}

struct Case {
  Bytes program;
  std::uint64_t pc_offset;
  int word;   // of the stack, which is the first return address; -1: cut
  int words;  // that were read
  bool uses_fp;
};

// The stack pointer is at word 0, the frame pointer at word 10.
void check_case(const Case& c) {
  const OneFunction f(c.program);
  current = &f;
  alignas(64) std::uint64_t stack[32];
  for (std::uint64_t i = 0; i < 32; ++i) stack[i] = 1000 + i;
  const auto top = reinterpret_cast<std::uint64_t>(stack);
  stack[9] = top + 24 * 8;  // that the frame pointer points behind: the CFA of a function that aligns its stack
  std::uint64_t found = 0;
  StackWord words[8];
  const Unwound u = unwind_by(find_current, {f.start() + c.pc_offset, top, top + 80}, &found, 1, words, 8);
  CHECK_EQ(u.frames, c.word < 0 ? 0 : 1);
  CHECK_EQ(u.words, c.words);
  CHECK_EQ(u.uses_fp, c.uses_fp);
  if (c.word < 0) {
    CHECK(u.end == Unwound::cut);
  } else {
    CHECK_EQ(found, 1000 + static_cast<std::uint64_t>(c.word));
    CHECK(u.words > 0 && words[u.words - 1].at == &stack[c.word]);
  }
}

}  // namespace

TEST(the_frame_begins_where_register_or_expression_say) {
  const Bytes plt = {0x0f, 11, breg_sp, 8, breg_ra, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  const Case cases[] = {
      {{}, 32, 0, 1, false},
      {{0x0e, 48}, 32, 5, 1, false},
      {{0x0c, fp, 16}, 32, 11, 1, true},
      {{0x0f, 3, breg_fp, 0x78, 0x06}, 32, 23, 2, true},            // fp - 8, deref
      {{0x0f, 4, breg_sp, 8, 0x23, 32}, 32, 4, 1, false},           // plus_uconst
      {{0x0f, 5, breg_sp, 0, 0x08, 40, 0x22}, 32, 4, 1, false},     // const1u
      {{0x0f, 6, breg_sp, 0, 0x0b, 40, 0, 0x22}, 32, 4, 1, false},  // const2s
      {{0x0f, 8, breg_sp, 0, 0x0c, 40, 0, 0, 0, 0x22}, 32, 4, 1, false},
      {{0x0f, 3, 0x73, 8, 0x06}, 32, -1, 0, false},                                         // rbx
      {{0x0f, 1, 0x22}, 32, -1, 0, false},                                                  // too few operands
      {{0x0f, 9, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30}, 32, -1, 0, false},  // too many
      {{0x0f, 0}, 32, -1, 0, false},
      {{0x0f, 3, breg_sp, 8, 0x12}, 32, -1, 0, false},  // DW_OP_dup
      {{0x0c, 3, 8}, 32, -1, 0, false},                 // rbx + 8
      {{0x0e, 0}, 32, -1, 0, false},                    // the stack must shrink
      {{0x0e, 12}, 32, -1, 0, false},                   // not aligned
      {{0x0e, 0, 0x11, ra, 0x7e}, 32, -1, 0, false},    // not even if the return address lies above
      {{0x0f, 3, breg_sp, 8, 0x06}, 32, -1, 0, false},  // a word was read, and is no address of a frame
      {{0x0c, fp, 12}, 32, -1, 0, false},               // the frame pointer was used, and is none
      {{offset_ra, 4}, 32, -1, 0, false},               // a return address below the stack pointer
  };
  for (const Case& c : cases) check_case(c);
  if (!return_column_is_pc) return;
  // In a procedure linkage table of x86-64, one word more from the 11th byte of an entry on.
  const OneFunction any({});
  const std::uint64_t entry = 16 - any.start() % 16;
  check_case({plt, entry + 6, 0, 1, false});
  check_case({plt, entry + 11, 1, 1, false});
}

TEST(an_undefined_return_address_ends_the_stack) {
  const OneFunction f({0x07, ra});
  current = &f;
  std::uint64_t stack[4] = {1, 2, 3, 4}, found = 0;
  StackWord words[8];
  const Unwound u =
      unwind_by(find_current, {f.start() + 1, reinterpret_cast<std::uint64_t>(stack), 0}, &found, 1, words, 8);
  CHECK(u.end == Unwound::outermost);
  CHECK_EQ(u.words, 0);
}

TEST(a_return_address_of_zero_ends_the_stack_and_is_a_word_on_which_that_depends) {
  const OneFunction f({});
  current = &f;
  std::uint64_t stack[4] = {f.start() + 9, 0, 3, 4}, found[2] = {};
  StackWord words[8];
  const Unwound u =
      unwind_by(find_current, {f.start() + 1, reinterpret_cast<std::uint64_t>(stack), 0}, found, 2, words, 8);
  CHECK(u.end == Unwound::outermost);
  CHECK_EQ(u.frames, 1);
  CHECK_EQ(u.words, 2);
  CHECK(are_unchanged(words, 2));
  stack[1] = 5;
  CHECK(!are_unchanged(words, 2));
  CHECK(are_unchanged(words, 1));
}

TEST(a_saved_frame_pointer_is_a_word_only_if_a_caller_needs_it) {
  const OneFunction f(
      {0x60, 0x0e, 16, offset_fp, 2, 0x60, 0x0d, fp});  // from the 32nd byte on saved, from the 64th on used
  current = &f;
  std::uint64_t stack[8] = {}, found[2] = {};
  const auto top = reinterpret_cast<std::uint64_t>(stack);
  StackWord words[8];
  stack[0] = top + 32;        // saved by the callee
  stack[1] = f.start() + 33;  // the caller does not need it
  stack[3] = f.start() + 34;
  Unwound u = unwind_by(find_current, {f.start() + 33, top, 0}, found, 2, words, 8);
  CHECK_EQ(u.frames, 2);
  CHECK_EQ(u.words, 2);
  stack[1] = f.start() + 65;  // now it does
  stack[5] = f.start() + 7;
  u = unwind_by(find_current, {f.start() + 33, top, 0}, found, 2, words, 8);
  CHECK_EQ(u.frames, 2);
  CHECK_EQ(found[1], f.start() + 7);
  CHECK_EQ(u.words, 3);
  CHECK(words[0].at == &stack[1] && words[1].at == &stack[0] && words[2].at == &stack[5]);
  CHECK(!u.uses_fp);
}

}  // namespace commlens
