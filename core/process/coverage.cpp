// SPDX-License-Identifier: Apache-2.0
#include "core/process/coverage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "generated/standard.h"

namespace commlens {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string text) {
  for (char& c : text) c = lower(c);
  return text;
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

bool ends(const std::string& text, const char* with) {
  const std::size_t n = std::strlen(with);
  return text.size() >= n && text.compare(text.size() - n, n, with) == 0;
}

// Like strcasecmp, but independent of the locale: Turkish has another small I.
int compare(const char* a, const char* b) {
  while (*a != '\0' && lower(*a) == lower(*b)) ++a, ++b;
  return lower(*a) - lower(*b);
}

// Returns the procedure with this name, in upper or lower case; null: none.
const StandardProcedure* find(const std::string& name) {
  const auto* const at = std::lower_bound(
      std::begin(standard_procedures), std::end(standard_procedures), name,
      [](const StandardProcedure& p, const std::string& wanted) { return compare(p.name, wanted.c_str()) < 0; });
  return at != std::end(standard_procedures) && compare(at->name, name.c_str()) == 0 ? at : nullptr;
}

// The procedure and the language binding that a symbol calls.
struct CalledProcedure {
  const StandardProcedure* procedure = nullptr;
  bool fortran = false;
  std::string c_name;  // as in mpi.h: MPI_Send_c
};

CalledProcedure called_by(const std::string& symbol) {
  CalledProcedure called;
  std::string name = begins(symbol, "P") || begins(symbol, "p") ? symbol.substr(1) : symbol;
  const bool has_lower = std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  called.fortran = name[0] == 'm' || !has_lower;  // no C name is all capitals
  if (!called.fortran) {
    called.c_name = name;
    called.procedure = find(name);
    if (called.procedure == nullptr && ends(name, "_c")) called.procedure = find(name.substr(0, name.size() - 2));
    return called;
  }
  name = lower(name);
  while (ends(name, "_")) name.pop_back();
  // MPI_Sizeof has one function for each type and shape.
  if (begins(name, "mpi_sizeof")) name = "mpi_sizeof";
  called.procedure = find(name);
  for (bool again = true; again && called.procedure == nullptr;) {
    again = false;
    for (const char* suffix : {"_f08", "_f08ts", "_large", "_cptr", "_c"}) {
      if (!ends(name, suffix)) continue;
      name.resize(name.size() - std::strlen(suffix));
      called.procedure = find(name);
      again = true;
      break;
    }
  }
  if (called.procedure != nullptr) called.c_name = called.procedure->name;
  return called;
}

// True for predefined callback functions: an application passes them to MPI, and never calls them.
bool is_callback(const std::string& symbol) {
  const std::string name = lower(symbol);
  return name.find("_copy_fn") != std::string::npos || name.find("_delete_fn") != std::string::npos ||
         name.find("_dup_fn") != std::string::npos || name.find("conversion_fn_null") != std::string::npos;
}

// True if the module at `address` belongs to the MPI library.
bool in_mpi_library(const std::vector<Module>& modules, std::uint64_t address) {
  const Module* const module = module_at(modules, address);
  return module != nullptr && is_mpi_library(module->path);
}

}  // namespace

// Compares the file name up to the first dot, because an application's own library may be called libmpi_utils.so.  It
// must equal a name of the first list, or begin with one of the second, which has names with many variants.  HPE Cray
// MPI adds compiler and version: libmpi_gnu_123.so, libmpifort_cray.so.
bool is_mpi_library(std::string_view path) noexcept {
  path.remove_prefix(path.rfind('/') + 1);
  const std::string_view stem = path.substr(0, path.find('.'));
  for (const char* known :
       {"libmpi", "libmpi_abi", "libmpi_mpifh", "libmpi_cxx", "libmpi_java", "libmpi_cray", "libmpi_gnu",
        "libmpi_intel", "libmpi_dbg", "libmpi_mt", "libmpi_dbg_mt", "libmpifort", "libmpicxx", "libpmpi", "libmpi++"}) {
    if (stem == known) return true;
  }
  for (const char* known : {"libmca_", "mca_", "libopen-", "libompi", "libmpich", "libmpi_usempi", "libmpi_ibm",
                            "libmpi_gnu_", "libmpi_cray_", "libmpi_intel_", "libmpi_nvidia", "libmpi_amd",
                            "libmpi_aocc", "libmpifort_", "libmpifort-", "libmpi-"}) {
    if (begins(stem, known)) return true;
  }
  return false;
}

std::string procedure_of(const std::string& symbol) {
  const CalledProcedure called = called_by(symbol);
  return called.procedure != nullptr ? called.procedure->name : symbol;
}

std::vector<ImportCoverage> coverage_of(const std::vector<Importer>& importers, const std::vector<Module>& modules,
                                        const FunctionOf& definition) {
  const auto goes_past_us = [&](const Importer& importer, const Import& import) {
    const bool unbound = import.bound >= importer.begin && import.bound < importer.end;
    return !unbound && in_mpi_library(modules, import.bound);
  };
  // A Fortran binding calls C procedures.  A Fortran procedure whose C procedure it does not call cannot be measured.
  std::set<const StandardProcedure*> called_by_bindings;
  for (const Importer& importer : importers) {
    if (!is_mpi_library(importer.path)) continue;
    for (const Import& import : importer.imports) {
      const CalledProcedure called = called_by(import.symbol);
      if (called.procedure == nullptr || called.fortran) continue;
      if (definition(called.c_name) != 0 && !goes_past_us(importer, import)) {
        called_by_bindings.insert(called.procedure);
      }
    }
  }

  std::vector<ImportCoverage> coverage;
  for (const Importer& importer : importers) {
    if (is_mpi_library(importer.path)) continue;
    const std::string object = importer.path.substr(importer.path.rfind('/') + 1);
    for (const Import& import : importer.imports) {
      const CalledProcedure called = called_by(import.symbol);
      Treatment treatment = Treatment::measured;
      if (called.procedure == nullptr) {
        // The application may have its own names with the prefix of MPI.
        if (!in_mpi_library(modules, definition(import.symbol)) || is_callback(import.symbol)) continue;
        treatment = Treatment::unknown;
      } else if (called.procedure->reason != reason_none) {
        treatment = called.procedure->reason == reason_apart ? Treatment::apart : Treatment::skipped;
      } else if (called.fortran) {
        if (called_by_bindings.count(called.procedure) == 0) treatment = Treatment::no_c_call;
      } else if (definition(called.c_name) == 0) {
        treatment = Treatment::absent;
      } else if (goes_past_us(importer, import)) {
        treatment = Treatment::past_us;
      }
      coverage.push_back({import.symbol, object, treatment});
    }
  }
  return coverage;
}

std::pair<const char*, std::string> explained(const std::string& symbol, Treatment treatment) {
  const StandardProcedure* const procedure = called_by(symbol).procedure;
  const auto reason = [&] { return procedure == nullptr ? "" : standard_reasons[procedure->reason]; };
  switch (treatment) {
    case Treatment::measured: return {"measured", ""};
    case Treatment::apart: return {"measured", reason()};
    case Treatment::skipped: return {"skipped", reason()};
    case Treatment::absent: return {"absent", "the loaded MPI library does not define it"};
    case Treatment::no_c_call:
      return {"unseen", "the Fortran binding of this MPI library does not call the C procedure, which commlens wraps"};
    case Treatment::past_us:
      return {"unseen", "the loader bound it directly to the MPI library, as dlopen with RTLD_DEEPBIND does"};
    case Treatment::unknown: break;
  }
  return {"unseen", "an extension of this MPI library, not a procedure of the MPI 5.0 standard"};
}

std::string written(const std::vector<ImportCoverage>& coverage) {
  WireWriter out;
  out.number(coverage.size());
  const std::string* last = nullptr;
  for (const ImportCoverage& c : coverage) {
    // The names of one object are consecutive: its own name is written once.
    out.text(last != nullptr && *last == c.object ? std::string() : c.object);
    out.text(c.symbol);
    out.number(static_cast<std::uint64_t>(c.treatment));
    last = &c.object;
  }
  return {out.bytes().begin(), out.bytes().end()};
}

bool read_coverage(const std::string& text, std::vector<ImportCoverage>& coverage) {
  WireReader in(text.data(), text.size());
  std::string object;
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    std::string name = in.text();
    if (!name.empty()) object = std::move(name);
    std::string symbol = in.text();
    const std::uint64_t treatment = in.number();
    if (!in.ok() || treatment > static_cast<std::uint64_t>(Treatment::unknown)) return false;
    coverage.push_back({std::move(symbol), object, static_cast<Treatment>(treatment)});
  }
  return in.ok();
}

}  // namespace commlens
