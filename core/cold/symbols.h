// SPDX-License-Identifier: Apache-2.0
// Names looked up in the tables of the loaded objects.  dlsym and dladdr would wait for a dlopen that is under way in
// another thread, which may wait for us; and they make the program forget its dlerror().
#pragma once

namespace commlens {

struct Definition {
  void* address = nullptr;  // null: none
  const char* object = "";  // the path of the object that has it, as the dynamic linker knows it
  bool is_variable = false;
};

// The objects loaded now are those the program began with.  Call from a constructor.
void program_begins() noexcept;

// The definition of `name` that the program's calls reach: from an object the program began with, or from an MPI
// library that was loaded later, with its names visible to all (RTLD_GLOBAL) or not.  Where something else that was
// loaded later defines the name, only the dynamic linker knows whether that is visible, and is asked.
//
// `behind`: only objects behind the one that holds this address are looked into, with the exception of MPI libraries;
// null: all.
Definition find_symbol(const char* name, const void* behind) noexcept;

// The definition of `name` in the object that holds `address`.
void* find_symbol_beside(const void* address, const char* name) noexcept;

// The path of the object that holds `address`; empty for the program itself, and where none does.
const char* object_of(const void* address) noexcept;

// True for an address in the code or data of a loaded object; false for memory that was allocated.
bool is_in_object(const void* address) noexcept;

}  // namespace commlens
