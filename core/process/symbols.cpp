// SPDX-License-Identifier: Apache-2.0
#include "core/process/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "core/process/coverage.h"
#include "core/process/dynamic_section.h"

namespace commlens {
namespace {

// The tables in which the dynamic linker finds the definitions of an object.
struct Exports {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;      // DT_GNU_HASH
  const std::uint32_t* old_hash = nullptr;  // DT_HASH
  const std::uint16_t* versions = nullptr;  // DT_VERSYM
};

Exports exports_of(const dl_phdr_info& object) noexcept {
  Exports e;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const std::uint64_t at = dynamic_address(object.dlpi_addr, entry->d_un.d_ptr);
      switch (entry->d_tag) {
        case DT_SYMTAB: e.symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
        case DT_STRTAB: e.strings = reinterpret_cast<const char*>(at); break;
        case DT_GNU_HASH: e.hash = reinterpret_cast<const std::uint32_t*>(at); break;
        case DT_HASH: e.old_hash = reinterpret_cast<const std::uint32_t*>(at); break;
        case DT_VERSYM: e.versions = reinterpret_cast<const std::uint16_t*>(at); break;
        default: break;
      }
    }
  }
  return e;
}

struct Name {
  const char* text;
  std::uint32_t gnu;  // its hash in DT_GNU_HASH
};

Name hashed(const char* text) noexcept {
  std::uint32_t gnu = 5381;
  for (const char* c = text; *c != '\0'; ++c) gnu = gnu * 33 + static_cast<unsigned char>(*c);
  return {text, gnu};
}

// Returns the hash of a name in DT_HASH, which counts only where there is no DT_GNU_HASH.
std::uint32_t old_hash_of(const char* text) noexcept {
  std::uint32_t old = 0;
  for (const char* c = text; *c != '\0'; ++c) {
    old = (old << 4) + static_cast<unsigned char>(*c);
    const std::uint32_t high = old & 0xf0000000u;
    old = (old ^ (high >> 24)) & ~high;
  }
  return old;
}

bool defines(const Exports& e, std::uint32_t index, const Name& name) noexcept {
  const ElfW(Sym) & symbol = e.symbols[index];
  constexpr std::uint16_t hidden = 0x8000;  // not the default version: new programs do not link with it
  const unsigned type = ELF64_ST_TYPE(symbol.st_info), bind = ELF64_ST_BIND(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && type != STT_TLS &&
         (bind == STB_GLOBAL || bind == STB_WEAK) && (e.versions == nullptr || (e.versions[index] & hidden) == 0) &&
         std::strcmp(e.strings + symbol.st_name, name.text) == 0;
}

// Returns the index of the symbol; 0: none.
std::uint32_t find_gnu(const Exports& e, const Name& name) noexcept {
  const std::uint32_t buckets = e.hash[0], first = e.hash[1], words = e.hash[2], shift = e.hash[3];
  if (buckets == 0 || words == 0) return 0;
  const auto* const bloom = reinterpret_cast<const std::uint64_t*>(e.hash + 4);
  const std::uint64_t word = bloom[(name.gnu / 64) % words];
  if (((word >> (name.gnu % 64)) & (word >> ((name.gnu >> shift) % 64)) & 1) == 0) return 0;
  const auto* const bucket = reinterpret_cast<const std::uint32_t*>(bloom + words);
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t index = bucket[name.gnu % buckets];
  if (index < first) return 0;
  for (;; ++index) {
    const std::uint32_t entry = chain[index - first];
    if ((entry | 1) == (name.gnu | 1) && defines(e, index, name)) return index;
    if ((entry & 1) != 0) return 0;
  }
}

std::uint32_t find_old(const Exports& e, const Name& name) noexcept {
  const std::uint32_t buckets = e.old_hash[0];
  if (buckets == 0) return 0;
  const std::uint32_t *const bucket = e.old_hash + 2, *const chain = bucket + buckets;
  for (std::uint32_t index = bucket[old_hash_of(name.text) % buckets]; index != 0; index = chain[index]) {
    if (defines(e, index, name)) return index;
  }
  return 0;
}

bool holds(const dl_phdr_info& object, const void* address) noexcept {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object.dlpi_phdr[i];
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - (object.dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_LOAD && offset < segment.p_memsz) return true;
  }
  return false;
}

std::uint32_t find_in(const Exports& e, const Name& name) noexcept {
  if (e.symbols == nullptr || e.strings == nullptr) return 0;
  if (e.hash != nullptr) return find_gnu(e, name);
  return e.old_hash != nullptr ? find_old(e, name) : 0;
}

const ElfW(Sym) * symbol_in(const dl_phdr_info& object, const Name& name) noexcept {
  const Exports e = exports_of(object);
  const std::uint32_t index = find_in(e, name);
  return index == 0 ? nullptr : &e.symbols[index];
}

Definition definition_in(const dl_phdr_info& object, const ElfW(Sym) & symbol) noexcept {
  return {reinterpret_cast<void*>(object.dlpi_addr + symbol.st_value), object.dlpi_name,
          ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT};
}

std::size_t objects_at_begin = 0;  // the dynamic linker keeps their order, and appends others

struct Search {
  Name name;
  const void* behind;
  std::size_t objects;        // visited so far
  bool is_behind;             // the object that contains `behind` has been visited
  bool asks_linker;           // only the dynamic linker can decide
  Definition found, library;  // library: in an MPI library, perhaps loaded without RTLD_GLOBAL
};

int look_into(dl_phdr_info* object, std::size_t, void* out) {
  Search& search = *static_cast<Search*>(out);
  const bool is_first = search.objects++ < objects_at_begin;
  if (!search.is_behind && holds(*object, search.behind)) {
    search.is_behind = true;
    return 0;
  }
  // Compares names of objects last: that takes longest, and most objects do not define the name.
  if (!search.is_behind && !is_mpi_library(object->dlpi_name)) return 0;
  const ElfW(Sym)* const symbol = symbol_in(*object, search.name);
  if (symbol == nullptr) return 0;
  const bool is_plain = ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC;
  if (search.is_behind && is_first && is_plain) {
    search.found = definition_in(*object, *symbol);
    return 1;
  }
  if (is_plain && is_mpi_library(object->dlpi_name)) {
    if (search.library.address == nullptr) search.library = definition_in(*object, *symbol);
  } else {
    search.asks_linker = true;
  }
  return 0;
}

}  // namespace

void program_begins() noexcept {
  objects_at_begin = 0;
  dl_iterate_phdr([](dl_phdr_info*, std::size_t, void*) { return ++objects_at_begin, 0; }, nullptr);
}

Definition find_symbol(const char* name, const void* behind) noexcept {
  Search search{hashed(name), behind, 0, behind == nullptr, false, {}, {}};
  dl_iterate_phdr(look_into, &search);
  if (search.found.address != nullptr) return search.found;
  if (search.asks_linker) {
    Dl_info where;
    const ElfW(Sym)* symbol = nullptr;
    void* const address = dlsym(behind == nullptr ? RTLD_DEFAULT : RTLD_NEXT, name);
    if (address != nullptr &&
        dladdr1(address, &where, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) != 0) {
      return {address, where.dli_fname, symbol != nullptr && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT};
    }
  }
  return search.library;
}

void* find_symbol_beside(const void* address, const char* name) noexcept {
  struct Beside {
    const void* address;
    Name name;
    void* found;
  } search{address, hashed(name), nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        Beside& s = *static_cast<Beside*>(out);
        if (!holds(*object, s.address)) return 0;
        const ElfW(Sym)* const symbol = symbol_in(*object, s.name);
        if (symbol != nullptr) s.found = definition_in(*object, *symbol).address;
        return 1;
      },
      &search);
  return search.found;
}

DefinedNames::DefinedNames(const void* address) noexcept {
  struct {
    const void* address;
    Exports found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        auto& s = *static_cast<decltype(search)*>(out);
        if (!holds(*object, s.address)) return 0;
        s.found = exports_of(*object);
        return 1;
      },
      &search);
  symbols_ = search.found.symbols;
  strings_ = search.found.strings;
  hash_ = search.found.hash;
  old_hash_ = search.found.old_hash;
  versions_ = search.found.versions;
}

bool DefinedNames::has(const char* name) const noexcept {
  const Exports e{static_cast<const ElfW(Sym)*>(symbols_), strings_, hash_, old_hash_, versions_};
  return find_in(e, hashed(name)) != 0;
}

bool are_in_one_object(const void* one, const void* other) noexcept {
  const void* both[] = {one, other};
  const auto look = [](dl_phdr_info* object, std::size_t, void* out) {
    const auto* const addresses = static_cast<const void* const*>(out);
    const bool is_first = holds(*object, addresses[0]), is_second = holds(*object, addresses[1]);
    return is_first || is_second ? 1 + (is_first && is_second ? 1 : 0) : 0;
  };
  return dl_iterate_phdr(look, both) == 2;
}

const char* object_of(const void* address) noexcept {
  struct {
    const void* address;
    const char* path;
  } search{address, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        auto& s = *static_cast<decltype(search)*>(out);
        if (!holds(*object, s.address)) return 0;
        s.path = object->dlpi_name;
        return 1;
      },
      &search);
  return search.path;
}

const char* shown_object_of(const void* address) noexcept {
  const char* const path = object_of(address);
  return *path != '\0' ? path : "the program itself";
}

bool is_in_object(const void* address) noexcept {
  return dl_iterate_phdr([](dl_phdr_info* object, std::size_t, void* at) { return holds(*object, at) ? 1 : 0; },
                         const_cast<void*>(address)) != 0;
}

}  // namespace commlens
