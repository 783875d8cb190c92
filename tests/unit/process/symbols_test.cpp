// SPDX-License-Identifier: Apache-2.0
#include "core/process/symbols.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/unit/check.h"

// insque() and remque() are what libc defines and no sanitizer.
namespace commlens {
namespace {

// A library that the tests do not need, and where it is.
constexpr char zlib[] = "libz.so.1", zlib_function[] = "deflateSetHeader";

std::string path_of(const void* address) {
  Dl_info where;
  return dladdr(address, &where) == 0 ? "" : where.dli_fname;
}

}  // namespace

TEST(what_the_dynamic_linker_finds_is_found) {
  program_begins();
  for (const char* name : {"insque", "remque", "environ", "dl_iterate_phdr", "pthread_create", "getenv", "stdout"}) {
    const Definition found = find_symbol(name, nullptr);
    CHECK_EQ(found.address, dlsym(RTLD_DEFAULT, name));
    CHECK(found.address != nullptr);
    const std::string object = found.object;  // empty for the program, which has copies of variables
    if (!object.empty()) CHECK_EQ(object, path_of(found.address));
  }
  CHECK(find_symbol("no_such_function_anywhere", nullptr).address == nullptr);
  CHECK(find_symbol("", nullptr).address == nullptr);
}

TEST(functions_that_are_chosen_at_load_time_are_asked_of_the_dynamic_linker) {
  program_begins();
  CHECK_EQ(find_symbol("memcpy", nullptr).address, dlsym(RTLD_DEFAULT, "memcpy"));
}

TEST(variables_are_told_from_functions) {
  program_begins();
  CHECK(find_symbol("environ", nullptr).is_variable);
  CHECK(!find_symbol("insque", nullptr).is_variable);
}

TEST(only_objects_behind_the_one_named_are_looked_into) {
  program_begins();
  const void* const in_libc = dlsym(RTLD_DEFAULT, "insque");
  CHECK(find_symbol("insque", in_libc).address == nullptr);
  static const int here = 0;
  CHECK_EQ(find_symbol("insque", &here).address, const_cast<void*>(in_libc));
  CHECK(find_symbol("insque", reinterpret_cast<const void*>(1)).address == nullptr);  // in no object
}

TEST(what_is_loaded_later_counts_when_it_is_visible_or_an_mpi_library) {
  program_begins();
  CHECK(find_symbol(zlib_function, nullptr).address == nullptr);
  void* const hidden = dlopen(zlib, RTLD_LAZY | RTLD_LOCAL);
  CHECK(hidden != nullptr);
  if (hidden == nullptr) return;
  void* const function = dlsym(hidden, zlib_function);
  CHECK(find_symbol(zlib_function, nullptr).address == nullptr);

  // The same as a file that is called like an MPI library.
  const auto folder = std::filesystem::temp_directory_path() / ("commlens-symbols-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string copy = folder / "libmpi.so.99";
  std::filesystem::copy_file(path_of(function), copy);
  void* const mpi = dlopen(copy.c_str(), RTLD_LAZY | RTLD_LOCAL);
  std::filesystem::remove_all(folder);
  CHECK(mpi != nullptr);
  if (mpi == nullptr) return;
  const Definition found = find_symbol(zlib_function, nullptr);
  CHECK_EQ(found.address, dlsym(mpi, zlib_function));
  CHECK_EQ(std::string(found.object), copy);
  dlclose(mpi);

  CHECK(dlopen(zlib, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD) == hidden);
  CHECK_EQ(find_symbol(zlib_function, nullptr).address, function);
}

TEST(an_object_is_asked_for_its_own_definition) {
  const void* const in_libc = dlsym(RTLD_DEFAULT, "insque");
  CHECK_EQ(find_symbol_beside(in_libc, "remque"), dlsym(RTLD_DEFAULT, "remque"));
  static const int here = 0;
  CHECK(find_symbol_beside(&here, "remque") == nullptr);
}

TEST(the_names_of_an_object_are_those_that_the_dynamic_linker_finds_in_it) {
  const void* const in_libc = dlsym(RTLD_DEFAULT, "insque");
  const DefinedNames names(in_libc);
  for (const char* name : {"insque", "remque", "environ", "memcpy", "stdout"}) CHECK(names.has(name));
  for (const char* name : {"no_such_function_anywhere", "", "insqu", "insque_", "dlsym_of_ours"})
    CHECK(!names.has(name));
  const DefinedNames nothing(reinterpret_cast<const void*>(1));
  CHECK(!nothing.has("insque"));
}

TEST(two_addresses_are_in_one_object_or_not) {
  static const int here = 0, there = 0;
  const void* const in_libc = dlsym(RTLD_DEFAULT, "insque");
  const auto allocated = std::make_unique<int>(0);
  CHECK(are_in_one_object(&here, &there));
  CHECK(are_in_one_object(in_libc, dlsym(RTLD_DEFAULT, "remque")));
  CHECK(!are_in_one_object(&here, in_libc));
  CHECK(!are_in_one_object(&here, allocated.get()));
  CHECK(!are_in_one_object(allocated.get(), allocated.get()));
  CHECK_EQ(std::string(shown_object_of(in_libc)), path_of(in_libc));
  CHECK_EQ(std::string(shown_object_of(&here)), std::string("the program itself"));
}

TEST(allocated_memory_is_in_no_object) {
  static const int here = 0;
  const auto there = std::make_unique<int>(0);
  CHECK(is_in_object(&here));
  CHECK(!is_in_object(there.get()));
}

TEST(an_earlier_error_of_dlopen_is_not_forgotten) {
  program_begins();
  CHECK(dlopen("/no/such/library.so", RTLD_LAZY) == nullptr);
  static_cast<void>(find_symbol("insque", nullptr));
  CHECK(dlerror() != nullptr);
}

}  // namespace commlens
