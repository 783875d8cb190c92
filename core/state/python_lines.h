// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/state/python_layout.h"

namespace commlens::python {

// Returns the line of the instruction at a byte offset, by the table of lines of its code object; `first_line` where
// the table has no line.  Accepts any bytes.
std::uint32_t line_at(Lines kind, std::string_view table, std::uint32_t first_line, std::uint64_t instruction) noexcept;

}  // namespace commlens::python
