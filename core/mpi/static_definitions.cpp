// SPDX-License-Identifier: Apache-2.0
// Of libcommlens.a only: finds the procedures of an MPI library that is linked into the program itself, which the
// dynamic linker need not know.
#include "core/mpi/static_definitions.h"

#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): names of MPI
extern "C" {
// Every library has these, which commlens does not wrap.  The linker keeps a shared library for them, too, which it
// would not for weak references (--as-needed).
extern char PMPI_Finalized[], PMPI_Get_library_version[], PMPI_Get_version[], PMPI_Initialized[];
#define ENTRY(name, slot) extern __attribute__((weak)) char P##name[];
#include "generated/entries.inc"
#undef ENTRY
}

void* commlens_static_definition(const char* name) noexcept {
  static const struct {
    const char* name;
    void* address;  // null: the library has no such procedure, or the linker did not take it
  } definitions[] = {
      {"MPI_Finalized", PMPI_Finalized},
      {"MPI_Get_library_version", PMPI_Get_library_version},
      {"MPI_Get_version", PMPI_Get_version},
      {"MPI_Initialized", PMPI_Initialized},
#define ENTRY(name, slot) {#name, P##name},
#include "generated/entries.inc"
#undef ENTRY
  };
  if (name[0] == 'P') ++name;
  for (const auto& one : definitions) {
    if (std::strcmp(one.name, name) == 0) return one.address;
  }
  return nullptr;
}
// NOLINTEND(readability-identifier-naming)
