// SPDX-License-Identifier: Apache-2.0
// Looks up names in the tables of the loaded objects.  dlsym and dladdr could deadlock: they wait for a dlopen in
// another thread, which may wait for us.  They also clear the dlerror() of the program.
#pragma once

#include <cstdint>

namespace commlens {

struct Definition {
  void* address = nullptr;  // null: none
  const char* object = "";  // path of the object that defines it, as the dynamic linker has it
  bool is_variable = false;
};

// Records that the program began with the objects that are loaded now.  Call from a constructor.
void program_begins() noexcept;

// Returns the definition of `name` that the program's calls reach.  Searches the objects that the program began with,
// and MPI libraries that were loaded later, even without RTLD_GLOBAL.  Asks the dynamic linker in two cases that only
// it can decide: another object that was loaded later defines the name, or the definition is an IFUNC.
//
// `behind`: search only objects behind the one that contains this address, and MPI libraries anywhere; null: search
// all.
Definition find_symbol(const char* name, const void* behind) noexcept;

// Returns the definition of `name` in the object that contains `address`, or null.
void* find_symbol_beside(const void* address, const char* name) noexcept;

// The names that one loaded object defines, for many lookups.  The object must stay loaded.
class DefinedNames {
 public:
  // Those of the object that contains `address`; none if no object does.
  explicit DefinedNames(const void* address) noexcept;
  bool has(const char* name) const noexcept;

 private:
  const void* symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t *hash_ = nullptr, *old_hash_ = nullptr;
  const std::uint16_t* versions_ = nullptr;
};

// Returns the path of the object that contains `address`; empty for the program itself, and if no object does.
const char* object_of(const void* address) noexcept;

// The same for a message: "the program itself" in place of an empty text.
const char* shown_object_of(const void* address) noexcept;

// True if one loaded object contains both addresses.
bool are_in_one_object(const void* one, const void* other) noexcept;

// True for an address in the code or data of a loaded object; false for allocated memory.
bool is_in_object(const void* address) noexcept;

}  // namespace commlens
