// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/cold/symbols.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

enum class Entry { mpi = 0, pmpi = 1 };

// Notes a wrapper for both entries of a procedure.  Functions of generated/wrap_*.cpp call this for all they have;
// tables would be filled by a constructor of ours, and a library of the application may call MPI from one that runs
// before.
template <class Function>
void wrap(void* wrappers[], int slot, Function* by_mpi, Function* by_pmpi) noexcept {
  wrappers[2L * slot] = reinterpret_cast<void*>(by_mpi);
  wrappers[2L * slot + 1] = reinterpret_cast<void*>(by_pmpi);
}

// The next definition of each entry, known from its first call on.
extern void* next_definitions[2 * slot_count];

template <class R, class... A>
inline auto next_of(R (*)(A...), Entry entry, int slot) noexcept -> R (*)(A...) {
  void* const next = __atomic_load_n(&next_definitions[2 * slot + static_cast<int>(entry)], __ATOMIC_RELAXED);
  return reinterpret_cast<R (*)(A...)>(next);
}

// The definition of an MPI name after ours.
Definition next_definition(const char* name) noexcept;

// The definition of a variable of the MPI library, or null.  Not the next one: an executable may hold the library's
// variables itself (copy relocations), and it stands before us in the search order.
void* data_definition(const char* name) noexcept;

// At exit: tells when MPI was used but no name of ours was called.
void say_when_bypassed() noexcept;

// From now on every entry goes straight to the next definition.
void stop_measuring() noexcept;

}  // namespace commlens
