// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// An executable or shared object in memory.
struct Module {
  std::string path;
  std::string build_id;  // hexadecimal, or empty
  std::uint64_t base;    // load address: an offset is an address minus this
  std::uint64_t begin, end;
};

// The modules loaded now, by address.
std::vector<Module> loaded_modules();

// The module that holds `address`, or null.
const Module* module_at(const std::vector<Module>& modules, std::uint64_t address);

// The module in which a call site lies, or null; remembered when first asked.  That is at the site's first call,
// because a plugin may be gone, and another one in its place, when the profile is collected.
const Module* module_of_site(std::uint64_t site) noexcept;

}  // namespace commlens
