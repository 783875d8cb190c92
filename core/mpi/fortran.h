// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The Fortran procedure that this thread called last.  entry.S writes it.
struct FortranCall {
  Site caller;  // return address; 0: its C call has been handled
  std::uint64_t op;
  const Site* frame;  // address of its return address on the stack; contains `caller` until it returns

  // Returns whether the procedure is still in progress.  inner: frame of the C call that asks.  Some procedures make no
  // C call and leave `caller` set; the next call of their caller overwrites the return address on the stack.  An
  // address far away may belong to a stack that no longer exists and is not read.
  bool is_under_way(const char* inner) const noexcept {
    constexpr std::uint64_t far = 1 << 20;
    const auto between = reinterpret_cast<std::uint64_t>(frame) - reinterpret_cast<std::uint64_t>(inner);
    return caller != 0 && between < far && *frame == caller;
  }
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
