// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the frames of CPython from its memory, without its lock: while a thread is inside an MPI call, no one changes
// its frames.  Only the functions of the interpreter that read a thread-local variable or return a constant are called.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/unwind.h"
#include "core/state/site_facts.h"

namespace commlens::python {

// Looks for an interpreter whose code this thread runs.  Returns an empty text, or the reason why its frames cannot be
// read.  Call it before the first thread counts.
std::string find_interpreter();

// Returns whether find_interpreter() has found one.  Becomes false for good when its memory is not as expected.
bool is_used() noexcept;

// What a thread does in Python.
struct Position {
  std::uint64_t thread;  // its thread state; 0: none
  std::uint64_t frame;   // innermost; 0: it runs no Python code
  std::uint64_t instruction;
};

// Returns the position of this thread.  is_shared: another thread may end the interpreter in the meantime, so that
// memory is only read by system calls that fail where it is missing.
Position position(bool is_shared) noexcept;

// Returns the same as are_unchanged(), but may be used if another thread ends the interpreter in the meantime.
bool are_still_unchanged(const StackWord* words, int count) noexcept;

// The Python frames of a thread, innermost first, and the words that prove them.  Frames of the import system are left
// out.
struct Frames {
  std::vector<SiteFacts> places;
  std::vector<StackWord> words;
};
inline constexpr unsigned words_of_frame = 18;  // at most

// thread: Position::thread.  thread_word: contains it, also whenever the words are compared.
Frames frames_at(std::uint64_t thread, const std::uint64_t* thread_word, unsigned most, bool is_shared);

// Returns whether an address lies in the interpreter.
bool is_interpreter(std::uint64_t address) noexcept;

}  // namespace commlens::python
