// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <link.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/process/modules.h"

namespace commlens {

// A name that a loaded object imports.
struct Import {
  std::string symbol;
  std::uint64_t bound;  // where a call goes; with lazy binding, in the object itself until the first call
};

// A loaded object and the MPI names that it imports: of C, of its profiling interface, and of Fortran.
struct Importer {
  std::string path;
  std::uint64_t begin, end;
  std::vector<Import> imports;  // each name once, sorted by name
};

// Returns the MPI names that one object imports.  Reads only the object's tables in memory, within its segments.
std::vector<Import> imports_of(const dl_phdr_info& object);

// Returns all loaded objects that import an MPI name.  modules: loaded_modules().
std::vector<Importer> loaded_importers(const std::vector<Module>& modules);

}  // namespace commlens
