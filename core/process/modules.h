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

// Returns the modules that are loaded now, sorted by address.
std::vector<Module> loaded_modules();

// Returns the executable, which the dynamic linker lists first; without a path if there is no memory.
Module executable_module();

// Returns the module that contains `address`, or null.
const Module* module_at(const std::vector<Module>& modules, std::uint64_t address);

}  // namespace commlens
