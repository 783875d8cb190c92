// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// A loaded executable or shared object.
struct Module {
  std::string path;
  std::string build_id;  // hexadecimal, or empty
  std::uint64_t base;    // load address: an offset in the module is an address minus this
  std::uint64_t begin, end;
};

// Returns the modules that are loaded now, sorted by address.  One may lie within another, between two of its segments:
// on aarch64, these are as far apart as the largest pages demand, and with pages of 4 KiB Linux puts the vDSO between
// those of the dynamic linker.
std::vector<Module> loaded_modules();

// Returns the executable, which the dynamic linker lists first; without a path if there is no memory.
Module executable_module();

// Returns the module that contains `address`, the inner one where one lies within another, or null.
const Module* module_at(const std::vector<Module>& modules, std::uint64_t address);

}  // namespace commlens
