// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cold/imports.h"
#include "core/cold/modules.h"
#include "core/cold/wire.h"

namespace commlens {

// What becomes of the calls of a name that the application imports; the later, the worse.
enum class Treatment : unsigned char {
  measured,   // they are in cells
  apart,      // they begin or end the measurement
  skipped,    // left out on purpose, with the reason of spec/calls.toml
  absent,     // the MPI library does not have it; the import is weak
  no_c_call,  // the Fortran binding does not call the C procedure, where we would see it
  past_us,    // bound to the MPI library directly
  unknown,    // no procedure of the standard
};

// One imported name.
struct Covered {
  std::string symbol, object;  // the object's file name
  Treatment treatment;
};

// Where the MPI library has the function of this name, or 0.
using FunctionOf = std::function<std::uint64_t(const std::string&)>;

// True for the MPI library, its language bindings and its components, by their file names.
bool is_mpi_library(std::string_view path) noexcept;

// The procedure of the standard that `symbol` calls (MPI_Send for PMPI_Send, MPI_Send_c, mpi_send_, mpi_send_f08_ and
// MPI_SEND), or `symbol` itself where it calls none.
std::string procedure_of(const std::string& symbol);

// What the application's objects import: `importers` without the MPI library, and without us.
std::vector<Covered> coverage_of(const std::vector<Importer>& importers, const std::vector<Module>& modules,
                                 const FunctionOf& definition);

// "measured", "skipped", "absent" or "unseen", and the reason; empty where there is nothing to explain.
std::pair<const char*, std::string> explained(const std::string& symbol, Treatment treatment);

// For the way to rank 0.
std::string written(const std::vector<Covered>& coverage);
bool read_coverage(const std::string& text, std::vector<Covered>& coverage);

}  // namespace commlens
