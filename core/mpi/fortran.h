// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/key.h"

// Who called the Fortran binding last on this thread; written by entry.S.
extern "C" __attribute__((visibility("hidden"))) __thread commlens::Site commlens_fortran_caller;

namespace [[gnu::visibility("hidden")]] commlens {

// Where the Fortran bindings of the MPI library lie in memory.  A C entry called from there is not where the
// application calls MPI; the Fortran entry before it is.
struct FortranBindings {
  static constexpr int capacity = 8;
  int count;  // 0 until the program calls a Fortran name
  struct {
    std::uint64_t begin, end;
  } range[capacity];
};
extern FortranBindings fortran_bindings;

Site search_behind_fortran(Site address) noexcept;

// The call site of a C entry that returns to `address`.
inline Site behind_fortran(Site address) noexcept {
  return __builtin_expect(fortran_bindings.count == 0, 1) ? address : search_behind_fortran(address);
}

}  // namespace commlens
