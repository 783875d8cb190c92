// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the byte rules need to know of a datatype: its size, and whether its elements lie side by side in memory.

#include <mpi.h>

#include <cstdint>

#include "core/hot/handles.h"
#include "core/mpi/api.h"

namespace [[gnu::visibility("hidden")]] commlens {

using Bytes = std::uint64_t;

// In one word, so that a map of handles can hold it.
class Layout {
 public:
  // Judged from the outside: a type that is as long as its data has no gaps, unless parts of it overlap.
  constexpr Layout(Bytes size, bool gapless, bool gapless_alone) noexcept
      : bits_(size << 3 | 4u | (gapless ? 2u : 0u) | (gapless_alone ? 1u : 0u)) {}
  explicit Layout(const void* packed) noexcept : bits_(reinterpret_cast<std::uintptr_t>(packed)) {}
  void* packed() const noexcept { return reinterpret_cast<void*>(bits_); }  // never null

  Bytes size() const noexcept { return bits_ >> 3; }                 // of the data of one element
  bool gapless() const noexcept { return (bits_ & 2u) != 0; }        // any number of elements, one behind the other
  bool gapless_alone() const noexcept { return (bits_ & 1u) != 0; }  // one element

 private:
  std::uint64_t bits_;
};

// By handle: of those the application has committed, and of predefined ones from their first use on.  A datatype that
// is freed while a call with it is under way cannot be asked any more.
extern HandleMap layouts;

// Cold: not known, or something was freed meanwhile.
Layout late_layout(MPI_Datatype datatype, std::uint64_t freed) noexcept;

// What a datatype was when a call began, at HandleMap::freed `freed`.
inline Layout layout_of(MPI_Datatype datatype, std::uint64_t freed) noexcept {
#if defined(MPICH_NAME)
  // MPICH and its descendants keep the size of a basic type in its handle.  The macro for it is not in mpi.h, but the
  // encoding is part of the ABI they share.
  if ((static_cast<std::uint32_t>(datatype) & 0xff000000u) == 0x4c000000u) {
    return {(static_cast<std::uint32_t>(datatype) >> 8) & 0xff, true, true};
  }
#endif
  const void* const known = layouts.find(bits(datatype));
  if (__builtin_expect(known != nullptr && HandleMap::none_freed_since(freed), 1)) return Layout(known);
  return late_layout(datatype, freed);
}

void datatype_made(MPI_Datatype datatype) noexcept;   // cold: it may be used from now on
void datatype_going(MPI_Datatype datatype) noexcept;  // cold: it is about to be freed

}  // namespace commlens
