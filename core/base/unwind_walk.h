// SPDX-License-Identifier: Apache-2.0
#pragma once
// unwind() with other unwind tables: tests damage a copy of the tables.

#include "core/base/unwind.h"
#include "core/base/unwind_tables.h"

namespace commlens {

Unwound unwind_by(FindTables find, StackFrame frame, std::uint64_t* returns, int most, StackWord* words,
                  int most_words) noexcept;

}  // namespace commlens
