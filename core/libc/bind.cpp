// SPDX-License-Identifier: Apache-2.0
// Makes our calls of libc functions reach libc even if the application defines functions of the same names; see
// jumps.S.
#include <dlfcn.h>

extern "C" __attribute__((visibility("hidden"))) void* commlens_libc_slots[];

namespace commlens {
namespace {

const char* const names[] = {
#define LIBC(name) #name,
#include "core/libc/names.inc"
#undef LIBC
};

// Runs before all our other constructors.
__attribute__((constructor(101))) void bind_libc() noexcept {
  void* const libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  if (libc == nullptr) return;  // another libc: keep what the dynamic linker found
  void** slot = commlens_libc_slots;
  for (const char* const name : names) {
    void* const own = dlsym(libc, name);
    if (own != nullptr) *slot = own;
    ++slot;
  }
}

}  // namespace
}  // namespace commlens
