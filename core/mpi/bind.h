// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/process/symbols.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

enum class Entry { mpi = 0, pmpi = 1 };

// Registers a wrapper for both entries of a procedure.  The functions of generated/wrap_*.cpp call this for all their
// procedures.  A table would be filled by a constructor of ours, and a library of the application may call MPI from a
// constructor that runs earlier.
template <class Function>
void wrap(void* wrappers[], int slot, Function* by_mpi, Function* by_pmpi) noexcept {
  wrappers[2L * slot] = reinterpret_cast<void*>(by_mpi);
  wrappers[2L * slot + 1] = reinterpret_cast<void*>(by_pmpi);
}

// The next definition of each entry; set at the entry's first call.
extern void* next_definitions[2 * slot_count];

template <class R, class... A>
inline auto next_of(R (*)(A...), Entry entry, int slot) noexcept -> R (*)(A...) {
  void* const next = __atomic_load_n(&next_definitions[2 * slot + static_cast<int>(entry)], __ATOMIC_RELAXED);
  return reinterpret_cast<R (*)(A...)>(next);
}

// Returns the definition of an MPI name that comes after ours in the search order.
Definition next_definition(const char* name) noexcept;

// Returns the MPI library's function of this name and type, or null.
template <class Function>
Function library(const char* name) noexcept {
  return reinterpret_cast<Function>(next_definition(name).address);
}

// Returns the address of a variable of the MPI library, or null.  Searches from the beginning, not after our library:
// an executable may contain the library's variables itself (copy relocations) and comes before us in the search order.
void* data_definition(const char* name) noexcept;

// Call at exit: prints a message if MPI was used but no name of ours was called.
void say_when_bypassed() noexcept;

// From now on every entry leads directly to the next definition.
void stop_measuring() noexcept;

}  // namespace commlens
