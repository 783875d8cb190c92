// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <link.h>

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// A name that a loaded object takes from another one.
struct Import {
  std::string symbol;
  std::uint64_t bound;  // where a call goes; inside the object itself until the first call, where binding is lazy
};

// A loaded object and the MPI names it imports: those of C, of its profiling interface and of Fortran.
struct Importer {
  std::string path;
  std::uint64_t begin, end;
  std::vector<Import> imports;  // each name once, by name
};

// What one object imports.  Reads the object's tables in memory only, and nothing outside the segments it has.
std::vector<Import> imports_of(const dl_phdr_info& object);

// All loaded objects that import an MPI name.
std::vector<Importer> loaded_importers();

}  // namespace commlens
