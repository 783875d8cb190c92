// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads .eh_frame: where a function's frame begins and where it has stored the registers of its caller.  Format: DWARF
// 5, section 6.4, and Linux Standard Base 5.0 Core, chapter 10.6.

#include <cstdint>

#include "core/base/dwarf_cursor.h"
#include "core/base/processor.h"
#include "core/base/unwind_tables.h"

namespace commlens {

// DWARF's numbers of the registers that matter here: frame pointer, stack pointer, and the column of the return
// address.
#if defined(COMMLENS_AARCH64)
// DWARF for the Arm 64-bit Architecture, section 4.1
inline constexpr std::uint64_t dwarf_fp = 29, dwarf_sp = 31, dwarf_return = 30;
inline constexpr bool return_column_is_pc = false;  // it is x30
#else
// System V ABI, AMD64, section 3.6.2
inline constexpr std::uint64_t dwarf_fp = 6, dwarf_sp = 7, dwarf_return = 16;
inline constexpr bool return_column_is_pc = true;  // rip
#endif

// How to find the value that a register has in the caller.
struct RegisterRule {
  enum Kind : std::uint8_t {
    same,        // the value it has in the function
    offset,      // in memory, at CFA + offset
    expression,  // in memory, at the address that the expression computes
    undefined,   // it has none: as return address of the first function of a thread
    unknown,     // not supported
  };
  Kind kind = same;
  std::uint64_t offset_from_cfa = 0;
  DwarfCursor code;  // expression
};

// How to find the canonical frame address (CFA), the caller's stack pointer after the return.
struct CfaRule {
  bool is_expression = false;
  std::uint64_t reg = 0, offset = 0;  // otherwise reg + offset
  DwarfCursor code;
};

// What holds at one instruction of a function.
struct UnwindRow {
  CfaRule cfa;
  RegisterRule fp, return_address;  // of all the rules, only these affect return addresses
};

// Returns false if there is no row for the instruction, if the function is a signal frame, and if the tables are
// damaged or use something that no compiler writes.
bool find_row(const UnwindTables& tables, std::uint64_t instruction, UnwindRow& row) noexcept;

}  // namespace commlens
