// SPDX-License-Identifier: Apache-2.0
#include "core/process/modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/check.h"

namespace commlens {
namespace {

int here = 0;

std::string executable() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return {path, n > 0 ? static_cast<std::size_t>(n) : 0};
}

// What readelf says is the build id of a file; empty when it has none.
std::string build_id_of(const std::string& path) {
  const std::string command = "readelf -n '" + path + "' 2>/dev/null | sed -n 's/.*Build ID: *//p'";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "readelf could not be run";
  char line[256] = "";
  if (std::fgets(line, sizeof line, pipe) == nullptr) line[0] = '\0';
  pclose(pipe);
  std::string id = line;
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace

TEST(the_executable_is_found_by_an_address_in_it_with_its_build_id) {
  const std::vector<Module> modules = loaded_modules();
  const Module* const m = module_at(modules, reinterpret_cast<std::uint64_t>(&here));
  CHECK(m != nullptr);
  if (m == nullptr) return;
  CHECK_EQ(m->path, executable());
  CHECK(m->build_id.size() >= 16);
  CHECK_EQ(m->build_id, build_id_of(m->path));
}

TEST(the_executable_is_known_without_the_others) {
  const Module first = executable_module();
  const std::vector<Module> modules = loaded_modules();
  const Module* const same = module_at(modules, reinterpret_cast<std::uint64_t>(&here));
  CHECK(same != nullptr && same->path == first.path && same->build_id == first.build_id && same->base == first.base);
}

TEST(every_library_has_the_path_base_and_build_id_the_system_says) {
  const std::vector<Module> modules = loaded_modules();
  int libraries = 0;
  for (const Module& m : modules) {
    if (m.path.empty() || m.path[0] != '/' || m.path == executable()) continue;
    ++libraries;
    CHECK_EQ(m.build_id, build_id_of(m.path));
    CHECK(m.base <= m.begin && m.begin < m.end);
  }
  CHECK(libraries >= 2);  // libc and the loader, at least
  Dl_info info{};
  void* const function = dlsym(RTLD_DEFAULT, "fopen64");
  CHECK(function != nullptr && dladdr(function, &info) != 0);
  const Module* const m = module_at(modules, reinterpret_cast<std::uint64_t>(function));
  CHECK(m != nullptr);
  if (m != nullptr) CHECK_EQ(m->base, reinterpret_cast<std::uint64_t>(info.dli_fbase));
}

TEST(modules_are_in_the_order_of_their_addresses_and_overlap_only_where_one_lies_within_another) {
  const std::vector<Module> modules = loaded_modules();
  for (std::size_t i = 1; i < modules.size(); ++i) {
    const Module &before = modules[i - 1], &after = modules[i];
    CHECK(before.begin < after.begin && (before.end <= after.begin || after.end < before.end));
  }
}

TEST(an_address_around_a_module_that_lies_within_another_belongs_to_the_outer_one) {
  const std::vector<Module> modules = {
      {"/lib/linker", {}, 100, 100, 1000}, {"inner", {}, 400, 400, 500}, {"/lib/other", {}, 2000, 2000, 3000}};
  CHECK(module_at(modules, 99) == nullptr);
  for (const std::uint64_t address : {100, 399, 500, 999}) CHECK_EQ(module_at(modules, address), &modules[0]);
  for (const std::uint64_t address : {400, 499}) CHECK_EQ(module_at(modules, address), &modules[1]);
  for (const std::uint64_t address : {1000, 1999, 3000}) CHECK(module_at(modules, address) == nullptr);
  CHECK_EQ(module_at(modules, 2999), &modules[2]);
}

TEST(an_address_in_no_module_belongs_to_none) {
  const std::vector<Module> modules = loaded_modules();
  const int on_stack = 0;
  CHECK(module_at(modules, 16) == nullptr);
  CHECK(module_at(modules, ~std::uint64_t{0}) == nullptr);
  CHECK(module_at(modules, reinterpret_cast<std::uint64_t>(&on_stack)) == nullptr);
  CHECK(module_at({}, 16) == nullptr);
  for (const Module& m : modules) {
    CHECK_EQ(module_at(modules, m.begin), &m);
    CHECK_EQ(module_at(modules, m.end - 1), &m);
    CHECK(module_at(modules, m.end) != &m);
  }
}

}  // namespace commlens
