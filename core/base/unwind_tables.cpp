// SPDX-License-Identifier: Apache-2.0
#include "core/base/unwind_tables.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

#include "core/base/memory.h"

namespace commlens {
namespace {

// struct dl_find_object of glibc 2.35.  Declared here, because the build may have an older glibc.
struct FoundObject {
  unsigned long long flags;
  std::uint8_t* begin;  // of the loaded object
  std::uint8_t* end;
  const link_map* map;
  const std::uint8_t* header;  // PT_GNU_EH_FRAME
  unsigned long long reserved[7];
};

// Looked up when the library is loaded, because a reference, even a weak one, would keep it from loading with an older
// glibc: the linker demands the version GLIBC_2.35.  Null with an older one, and before the constructors have run.
using FindObject = int (*)(void* address, FoundObject* found);

FindObject look_up() noexcept {
  void* const found = dlsym(RTLD_DEFAULT, "_dl_find_object");
  if (found == nullptr) dlerror();  // the application does not see our error
  return reinterpret_cast<FindObject>(found);
}

const FindObject find_object = look_up();

// Sets all but the addresses of the object.
bool set_tables(std::uint64_t bias, const ElfW(Phdr) * segments, std::size_t count, UnwindTables& tables) noexcept {
  const ElfW(Phdr)* header = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (segments[i].p_type == PT_GNU_EH_FRAME) header = &segments[i];
  }
  if (header == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const ElfW(Phdr) & segment = segments[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    if (header->p_vaddr - segment.p_vaddr >= segment.p_filesz) continue;
    tables.header = reinterpret_cast<const std::uint8_t*>(bias + header->p_vaddr);
    tables.begin = reinterpret_cast<const std::uint8_t*>(bias + segment.p_vaddr);
    tables.end = tables.begin + segment.p_filesz;
    return true;
  }
  return false;
}

// The program headers, which the ELF header at the begin of the object refers to, if they lie in its first page.
bool set_tables(const FoundObject& found, UnwindTables& tables) noexcept {
  constexpr std::size_t page = smallest_page;
  ElfW(Ehdr) elf;
  if (static_cast<std::size_t>(found.end - found.begin) < page) return false;
  std::memcpy(&elf, found.begin, sizeof elf);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_phentsize != sizeof(ElfW(Phdr))) return false;
  if (elf.e_phoff % alignof(ElfW(Phdr)) != 0 || elf.e_phoff > page) return false;
  if (elf.e_phnum > (page - elf.e_phoff) / sizeof(ElfW(Phdr))) return false;
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(found.begin + elf.e_phoff);
  return set_tables(found.map->l_addr, segments, elf.e_phnum, tables) && tables.header == found.header;
}

struct Search {
  std::uint64_t pc;
  UnwindTables* tables;
  bool is_found;
};

int look_into(dl_phdr_info* object, std::size_t, void* out) noexcept {
  Search& search = *static_cast<Search*>(out);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object->dlpi_phdr[i];
    const std::uint64_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.pc - begin >= segment.p_memsz) continue;
    search.tables->first = begin;
    search.tables->behind = begin + segment.p_memsz;
    search.is_found = set_tables(object->dlpi_addr, object->dlpi_phdr, object->dlpi_phnum, *search.tables);
    return 1;
  }
  return 0;
}

}  // namespace

bool find_tables(std::uint64_t pc, UnwindTables& tables) noexcept {
  if (find_object != nullptr) {
    FoundObject found;
    if (find_object(reinterpret_cast<void*>(pc), &found) != 0 || found.header == nullptr) return false;
    if (set_tables(found, tables)) {
      tables.first = reinterpret_cast<std::uint64_t>(found.begin);
      tables.behind = reinterpret_cast<std::uint64_t>(found.end);
      return true;
    }
  }
  return find_tables_by_iteration(pc, tables);
}

bool find_tables_by_iteration(std::uint64_t pc, UnwindTables& tables) noexcept {
  Search search{pc, &tables, false};
  dl_iterate_phdr(look_into, &search);
  return search.is_found;
}

}  // namespace commlens
