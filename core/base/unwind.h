// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the callers of a function by the tables that compilers write for C++ exceptions (.eh_frame), on x86-64
// and aarch64; on other processors no function has callers.
//
// Also returns the stack words it read.  The unwinder is a deterministic function of the frame that it starts with, of
// these words and of the loaded objects.  So a later call from the same frame has the same callers if the words still
// have their values: a caller of unwind() can compare words instead of unwinding again.  It must forget them when an
// object is unloaded, because another one may be loaded at the same address.
//
// Allocates nothing and takes no lock, except with a glibc before 2.35, where the dynamic linker takes one.  libgcc's
// unwinder is not used: it does not return what it read.

#include <cstdint>

#include "core/base/processor.h"

namespace commlens {

#if defined(COMMLENS_PORTABLE)
inline constexpr bool can_unwind = false;  // unwind() finds no callers
#else
inline constexpr bool can_unwind = true;
#endif

// Whether the frame address of a wrapper determines the stack pointer of its caller.  On x86-64 it is 16 bytes below.
// On other processors the distance depends on the wrapper: two wrappers of one procedure can have the same frame
// address although the stack pointers of their callers differ.
#if defined(COMMLENS_X86_64)
inline constexpr bool frame_tells_sp = true;
#else
inline constexpr bool frame_tells_sp = false;
#endif

// Programs may sign return addresses (-mbranch-protection): the upper bits are the signature.  A processor without
// signatures takes the instruction, xpaclri, for one without effect.
inline std::uint64_t without_signature(std::uint64_t return_address) noexcept {
#if defined(COMMLENS_AARCH64)
  register std::uint64_t address asm("x30") = return_address;
  asm("hint #7" : "+r"(address));
  return address;
#else
  return return_address;
#endif
}

// A function that has made a call, in the state after the call returns.
struct StackFrame {
  std::uint64_t pc;  // the return address of the call
  std::uint64_t sp;  // the stack pointer after the return
  std::uint64_t fp;  // the frame pointer: rbp, x29
  // Words from sp to here belong to the thread's stack and are read directly, all others by a system call that fails
  // where memory is missing.  0: unknown.
  std::uint64_t stack_end = 0;
};

// Returns the stack pointer after the return of a caller of ours, of which we have the frame record: the address of the
// words with its caller's frame pointer and return address.  0: unknown.
std::uint64_t sp_after_return(const void* record) noexcept;

struct StackWord {
  const std::uint64_t* at;
  std::uint64_t value;
};

struct Unwound {
  enum End : std::uint8_t {
    full,       // as many return addresses as asked for
    outermost,  // the last one lies in the first function of the thread
    cut,        // a frame cannot be unwound, its return address would lie on the stack, or there is no space for words
  };
  int frames;    // number of return addresses found
  int words;     // number of stack words on which they, and `full` or `outermost`, depend
  bool uses_fp;  // they depend on StackFrame::fp, too
  End end;
};

// Stores the return address by which the function of `frame` returns to its caller, that of the caller, and so on
// outwards: at most `most`.  Stores the stack words in the order in which they were read, at most `most_words`.  After
// a cut, the words are only those that the frames found so far depend on.
Unwound unwind(StackFrame frame, std::uint64_t* returns, int most, StackWord* words, int most_words) noexcept;

// Returns whether a function in progress has its frame record at `record` and returns to `return_address`: whether it
// is one of the callers of `frame`.  Reads no memory that may be missing.  Stores the words on which the result depends
// as unwind() does, but none if there are more than `most_words`.
enum class Caller : std::uint8_t { is_one, is_none, unknown };  // unknown: a frame before it cannot be unwound
struct FoundCaller {
  Caller caller;
  int words;     // 0: not known
  bool uses_fp;  // it depends on StackFrame::fp, too
};
FoundCaller find_caller(StackFrame frame, const void* record, std::uint64_t return_address, StackWord* words,
                        int most_words) noexcept;

// Returns true if all words still have their values.  For the hot path, thus without a system call: the thread must be
// in a frame with the same pc and sp (and fp, if `uses_fp`) as the one that was unwound.
//
// Compares strictly in order and stops at the first difference.  Each address was computed from the words before it:
// only if these are equal, the address is known to lie in a live frame, and the stack may have been unmapped there
// otherwise.  The relaxed atomic load keeps the compiler from reading ahead.
inline bool is_unchanged(const StackWord& word) noexcept {
  return __atomic_load_n(word.at, __ATOMIC_RELAXED) == word.value;
}
inline bool are_unchanged(const StackWord* words, int count) noexcept {
  for (const StackWord *word = words, *const end = words + count; word != end; ++word) {
    if (!is_unchanged(*word)) return false;
  }
  return true;
}

}  // namespace commlens
