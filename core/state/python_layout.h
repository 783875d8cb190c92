// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace commlens::python {

// How a code object stores the lines of its instructions.
enum class Lines : std::uint8_t { lnotab, ranges, locations };

// Where one version of CPython stores what leads from a thread to the lines that it executes.  Offsets in bytes.
struct Layout {
  // Thread state: a pointer to the innermost frame, or, if `in_cframe` is not negative, to a structure that has it.
  std::uint32_t thread_frame;
  std::int32_t in_cframe;
  // Frame.  frame_owner: 0 if there is none.  The lowest bits of frame_code are not part of the pointer.
  std::uint32_t frame_code, frame_previous, frame_instruction, frame_owner;
  // Code object.  code_bytes: of the first instruction; 0: frame_instruction is an index, not a pointer.
  // code_version: a number that no other code object has; 0: there is none.
  std::uint32_t code_file, code_function, code_first_line, code_lines, code_bytes, code_version;
  // str: of the characters of an ASCII string, and of others.
  std::uint32_t text_ascii, text_other;
  std::uint32_t instruction_bytes;  // 1 or 2: of one step of an index
  Lines lines;
};

// Reads memory that may be missing; returns false if it is.
using Read = bool (*)(std::uint64_t from, void* to, std::size_t bytes);

// Finds the layout of a version such as "3.11.2 (main, ...)".  runtime: address of _PyRuntime, which begins with
// offsets from version 3.13 on; 0: none.  Returns an empty text, or the reason why the frames of this version cannot be
// read.
std::string find_layout(const char* version, std::uint64_t runtime, Read read, Layout& layout);

}  // namespace commlens::python
