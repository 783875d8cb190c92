// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/wire.h"
#include "core/process/imports.h"
#include "core/process/modules.h"

namespace commlens {

// How commlens treats the calls of a name that the application imports, from best to worst.
enum class Treatment : unsigned char {
  measured,   // counted in cells
  apart,      // begin or end the measurement
  skipped,    // left out on purpose; spec/calls.toml has the reason
  absent,     // the MPI library does not define it; the import is weak
  no_c_call,  // the Fortran binding does not call the C procedure, so that we do not see the call
  past_us,    // bound to the MPI library directly, past our wrapper
  unknown,    // not a procedure of the standard
};

// One imported name, and how commlens treats its calls.
struct ImportCoverage {
  std::string symbol, object;  // object: file name of the importing object
  Treatment treatment;
};

// Returns the address of the MPI library's function of this name, or 0.
using FunctionOf = std::function<std::uint64_t(const std::string&)>;

// True for the path of an MPI library, of its language bindings and of its components; compares the file name only.
bool is_mpi_library(std::string_view path) noexcept;

// Returns the procedure of the standard that `symbol` calls: MPI_Send for PMPI_Send, MPI_Send_c, mpi_send_,
// mpi_send_f08_ and MPI_SEND.  Returns `symbol` itself if it calls none.
std::string procedure_of(const std::string& symbol);

// Returns the MPI names that the application's objects import, with their treatment.  `importers` includes the objects
// of the MPI library, which are skipped, but not commlens itself.
std::vector<ImportCoverage> coverage_of(const std::vector<Importer>& importers, const std::vector<Module>& modules,
                                        const FunctionOf& definition);

// Returns "measured", "skipped", "absent" or "unseen", and the reason; the reason is empty where nothing needs one.
std::pair<const char*, std::string> explained(const std::string& symbol, Treatment treatment);

// Encode and decode coverage, for sending it to rank 0.  read_coverage() returns false for malformed text.
std::string written(const std::vector<ImportCoverage>& coverage);
bool read_coverage(const std::string& text, std::vector<ImportCoverage>& coverage);

}  // namespace commlens
