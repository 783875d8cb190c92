// SPDX-License-Identifier: Apache-2.0
// Takes the place of entry.S for processors without assembly of their own.  The exported names are functions that call
// what commlens_slots holds.  A compiler may make that call a jump or not, so each function stores where it was called.
//
// Arguments are passed on as words, the type that integers and pointers have in registers and on the stack: a call of
// an MPI with another binary interface passes through unharmed.  Some of the words may be none of the caller's
// arguments: they are what lies in registers and on its stack.
#include "core/mpi/entry_portable.h"

#include "core/mpi/fortran.h"
#include "core/mpi/fortran_forms.h"

// NOLINTBEGIN(readability-identifier-naming): names of MPI
// More than any procedure has: 13 in C; in Fortran an error code more, and lengths of texts.
#define WORDS                                                                                                     \
  long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n, \
      long o, long p
#define SAME_WORDS a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p

namespace {
using Function = long(WORDS);
}

extern "C" {
__thread commlens::Site commlens_caller;

__attribute__((visibility("hidden"))) void* commlens_slots[2 * commlens::slot_count];
__attribute__((visibility("hidden"))) void* commlens_bind(long entry) noexcept;

enum {
#define FORTRAN(name, upper, number, op)
#include "generated/fortran.inc"
#undef FORTRAN
  fortran_slot_count = FORTRAN_NAMES * FORTRAN_FORMS
};
__attribute__((visibility("hidden"))) void* commlens_fortran_slots[fortran_slot_count];
__attribute__((visibility("hidden"))) void* commlens_bind_fortran(long entry) noexcept;
}

namespace {

// Returns where an entry leads; asks at its first call.
template <void* (*bind)(long) noexcept>
Function* target(void** slots, long entry) noexcept {
  void* const known = __atomic_load_n(&slots[entry], __ATOMIC_ACQUIRE);
  return reinterpret_cast<Function*>(__builtin_expect(known != nullptr, 1) ? known : bind(entry));
}

}  // namespace

#define CALLER reinterpret_cast<commlens::Site>(__builtin_extract_return_addr(__builtin_return_address(0)))

#define ENTRY_NAME(name, entry)                                          \
  extern "C" __attribute__((visibility("default"))) long name(WORDS) {   \
    Function* const next = target<commlens_bind>(commlens_slots, entry); \
    commlens_caller = CALLER;                                            \
    return next(SAME_WORDS);                                             \
  }
#define ENTRY(name, slot)       \
  ENTRY_NAME(name, 2L * (slot)) \
  ENTRY_NAME(P##name, 2L * (slot) + 1)
#include "generated/entries.inc"

// The procedure is under way until it returns, or the program leaves it by a jump or an exception.
#define FORTRAN_NAME(name, number, op)                                                    \
  extern "C" __attribute__((visibility("default"))) long name(WORDS) {                    \
    Function* const next = target<commlens_bind_fortran>(commlens_fortran_slots, number); \
    commlens_fortran_call = {CALLER, op, nullptr};                                        \
    const long result = next(SAME_WORDS);                                                 \
    commlens_fortran_call.caller = 0;                                                     \
    return result;                                                                        \
  }
#define FORTRAN(name, upper, number, op) EACH_FORTRAN_FORM(name, upper, number, op)
#include "generated/fortran.inc"
// NOLINTEND(readability-identifier-naming)
