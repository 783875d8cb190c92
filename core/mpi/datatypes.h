// SPDX-License-Identifier: Apache-2.0
#pragma once

// The facts about a datatype that the byte rules need: its size, and whether its elements are contiguous in memory.

#include <mpi.h>

#include <cstdint>

#include "core/hot/handles.h"
#include "core/mpi/api.h"
#include "core/state/datatypes.h"

namespace [[gnu::visibility("hidden")]] commlens {

using Bytes = std::uint64_t;

// Size and contiguity of a datatype, in one word so that a map of handles can store it.
class Layout {
 public:
  // Derived from size and extent: a type whose extent equals its size has no gaps, unless parts of it overlap.
  constexpr Layout(Bytes size, bool gapless, bool gapless_alone) noexcept
      : bits_(size << 3 | 4u | (gapless ? 2u : 0u) | (gapless_alone ? 1u : 0u)) {}
  explicit Layout(const void* packed) noexcept : bits_(reinterpret_cast<std::uintptr_t>(packed)) {}
  void* packed() const noexcept { return reinterpret_cast<void*>(bits_); }  // never null

  Bytes size() const noexcept { return bits_ >> 3; }                 // of the data of one element
  bool gapless() const noexcept { return (bits_ & 2u) != 0; }        // for any number of consecutive elements
  bool gapless_alone() const noexcept { return (bits_ & 1u) != 0; }  // for one element

 private:
  std::uint64_t bits_;
};

// Layouts by handle.  Those of the application's datatypes are recorded when it commits them, those of predefined ones
// at their first use.  A datatype that is freed during a call can no longer be queried after it.
//
// Empty while datatypes are counted: then every call that is not in the call cache takes the cold path, which adds the
// datatype to the site under which the call will be counted.  All other runs pay nothing for that.
extern HandleMap layouts;

// Counts datatypes from now on.  Call before the first MPI call.
void count_datatypes() noexcept;

// Cold path of layout_of(): the datatype is unknown, something was freed during the call, or datatypes are counted.
Layout late_layout(MPI_Datatype datatype, std::uint64_t freed, Use use) noexcept;

// Cold.  Returns the layout of a datatype that is known, or null.
const void* known_layout(MPI_Datatype datatype) noexcept;

#if defined(MPICH_NAME)
// The first byte of the handles of basic types; while datatypes are counted, a number that no handle has there.
extern std::uint32_t basic_kind;
#endif

// Returns the layout that a datatype had when the call began.  freed: HandleMap::freed at that time.
inline Layout layout_of(MPI_Datatype datatype, std::uint64_t freed, Use use) noexcept {
#if defined(MPICH_NAME)
  // MPICH and its descendants keep the size of a basic type in its handle.  The macro for it is not in mpi.h, but the
  // encoding is part of the ABI they share.
  if ((static_cast<std::uint32_t>(datatype) & 0xff000000u) == basic_kind) {
    return {(static_cast<std::uint32_t>(datatype) >> 8) & 0xff, true, true};
  }
#endif
  const void* const known = layouts.find(bits(datatype));
  if (__builtin_expect(known != nullptr && HandleMap::none_freed_since(freed), 1)) return Layout(known);
  return late_layout(datatype, freed, use);
}

void datatype_made(MPI_Datatype datatype) noexcept;     // cold; call when the application may use it
void foresee_datatype(MPI_Datatype datatype) noexcept;  // cold; learns the layout of a predefined one
void before_type_free(MPI_Datatype datatype) noexcept;  // cold; call before it is freed

}  // namespace commlens
