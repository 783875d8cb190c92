// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/key.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The Fortran procedure this thread called last; written by entry.S.
struct FortranCall {
  Site caller;  // 0: its C call has been seen
  std::uint64_t op;
  const Site* frame;  // where its return address is on the stack, which is `caller` until it returns

  // Whether it is still under way, asked in a call with this frame.  Some procedures make no C call, and leave `caller`
  // behind; the next call of their caller writes another return address there.  What lies far away may be a stack that
  // is gone, and is not looked at.
  bool is_under_way(const char* inner) const noexcept {
    constexpr std::uint64_t far = 1 << 20;
    const auto between = reinterpret_cast<std::uint64_t>(frame) - reinterpret_cast<std::uint64_t>(inner);
    return caller != 0 && between < far && *frame == caller;
  }
};

// Where the Fortran bindings of the MPI library lie in memory.
struct FortranBindings {
  static constexpr int capacity = 8;
  int count;  // 0 until the program calls a Fortran name
  struct {
    std::uint64_t begin, end;
  } range[capacity];
};
extern FortranBindings fortran_bindings;

// A binding makes the C call of its procedure, and sometimes others for its own use before it (Open MPI's
// MPI_Alltoallv asks for the size).  For a C call that returns to `site`: false when it is of the second kind and not
// the application's; else true, with `site` where the application called Fortran.  frame: of the C call.
bool from_fortran(Op op, Site& site, const char* frame) noexcept;

}  // namespace commlens

extern "C" __attribute__((visibility("hidden"))) __thread commlens::FortranCall commlens_fortran_call;
