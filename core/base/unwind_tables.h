// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the unwind tables of the object (program or library) that contains an address.

#include <cstdint>

namespace commlens {

struct UnwindTables {
  std::uint64_t first = 0, behind = 0;   // the addresses that belong to the object: first <= pc < behind
  const std::uint8_t* header = nullptr;  // .eh_frame_hdr
  const std::uint8_t* begin = nullptr;   // the loaded segment that contains header and .eh_frame: all linkers
  const std::uint8_t* end = nullptr;     //   put them side by side; nothing outside it is read
};

// Returns false if no object contains `pc`, or if it has no table.
using FindTables = bool (*)(std::uint64_t pc, UnwindTables& tables);

// Asks _dl_find_object(), which takes no lock, so that it is safe in a signal handler and in a callback of the dynamic
// linker, which holds its lock.  Before glibc 2.35, and for unusual objects, uses find_tables_by_iteration().
bool find_tables(std::uint64_t pc, UnwindTables& tables) noexcept;

// Asks dl_iterate_phdr(), which takes a lock of the dynamic linker and visits all objects.
bool find_tables_by_iteration(std::uint64_t pc, UnwindTables& tables) noexcept;

}  // namespace commlens
