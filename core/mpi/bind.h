// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

enum class Entry { mpi = 0, pmpi = 1 };

// A wrapper and the entries it serves; generated/wrap_*.cpp have one table each, closed by slot -1.
struct Wrapper {
  int slot;
  void* by_mpi;
  void* by_pmpi;
};

template <class R, class... A>
void* erase(R (*function)(A...)) {
  return reinterpret_cast<void*>(function);
}

// The next definition of each entry, known from its first call on.
extern void* next_definitions[2 * slot_count];

template <class R, class... A>
inline auto next_of(R (*)(A...), Entry entry, int slot) noexcept -> R (*)(A...) {
  void* const next = __atomic_load_n(&next_definitions[2 * slot + static_cast<int>(entry)], __ATOMIC_RELAXED);
  return reinterpret_cast<R (*)(A...)>(next);
}

// The definition of an MPI name after ours, or null.
void* next_definition(const char* name) noexcept;

// The definition of a variable of the MPI library, or null.  Not the next one: an executable may hold the library's
// variables itself (copy relocations), and it stands before us in the search order.
void* data_definition(const char* name) noexcept;

// At exit: tells when MPI was used but no name of ours was called.
void say_when_bypassed() noexcept;

// From now on every entry goes straight to the next definition.
void stop_measuring() noexcept;

}  // namespace commlens
