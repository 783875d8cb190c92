// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The Fortran procedure that this thread called last.  entry.S, or entry_portable.cpp, writes it.
struct FortranCall {
  Site caller;  // return address; 0: its C call has been handled
  std::uint64_t op;
  const Site* frame;  // x86-64: address of its return address on the stack; contains `caller` until it returns
                      // aarch64: the stack pointer when it was called

  // Returns whether the procedure is still in progress.  inner: frame of the C call that asks.  Some procedures make no
  // C call and leave `caller` set.  An address far away may belong to a stack that no longer exists and is not read.
  bool is_under_way(const char* inner) const noexcept {
#if defined(COMMLENS_PORTABLE)
    static_cast<void>(inner);
    return caller != 0;
#else
    constexpr std::uint64_t far = 1 << 20;
    const auto between = reinterpret_cast<std::uint64_t>(frame) - reinterpret_cast<std::uint64_t>(inner);
    return caller != 0 && between < far && is_on_stack(inner);
#endif
  }

 private:
#if defined(COMMLENS_X86_64)
  // The next call of its caller overwrites the return address on the stack.
  bool is_on_stack(const char*) const noexcept { return *frame == caller; }
#elif defined(COMMLENS_AARCH64)
  // Follows the frame records of the binding, which compilers for aarch64 store in all functions that call others.
  bool is_on_stack(const char* inner) const noexcept;
#endif
};

// The address ranges of the MPI library's Fortran bindings.
struct FortranBindings {
  static constexpr int capacity = 8;
  int count;  // 0 until the program calls a Fortran name
  struct {
    std::uint64_t begin, end;
  } range[capacity];
};
extern FortranBindings fortran_bindings;

// Determines where the application called MPI.  site: where the C call returns to; becomes the place where the
// application called Fortran if that is in a binding, and a call path if there are such.  frame: of the C call.
// Reads the events of the thread (state/events.h).  Returns false if the call is not the application's own.  A Fortran
// binding makes the C call of its procedure, and sometimes others before it for its own use: Open MPI's MPI_Alltoallv
// asks for the size.
bool locate(Thread& thread, Op op, Site& site, const char* frame) noexcept;

}  // namespace commlens

extern "C" __attribute__((visibility("hidden"))) __thread commlens::FortranCall commlens_fortran_call;
