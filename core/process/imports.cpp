// SPDX-License-Identifier: Apache-2.0
#include "core/process/imports.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/memory.h"
#include "core/process/dynamic_section.h"

namespace commlens {
namespace {

constexpr std::size_t longest_name = 128;  // longer than any MPI name

// The readable memory of one loaded object.
class Image {
 public:
  explicit Image(const dl_phdr_info& object) : base_(object.dlpi_addr) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const ElfW(Phdr) & segment = object.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
      segments_.push_back({base_ + segment.p_vaddr, segment.p_memsz});
    }
  }

  // Returns a pointer to `size` bytes at `address`, or null unless all of them belong to the object.
  const char* at(std::uint64_t address, std::uint64_t size) const {
    for (const auto& [begin, length] : segments_) {
      const std::uint64_t offset = address - begin;  // huge for addresses below `begin`
      if (offset <= length && size <= length - offset) return reinterpret_cast<const char*>(address);
    }
    return nullptr;
  }

  // Returns how many bytes follow from `address` on in its segment.
  std::uint64_t room(std::uint64_t address) const {
    for (const auto& [begin, length] : segments_) {
      if (address - begin <= length) return length - (address - begin);
    }
    return 0;
  }

  // Copies the `index`th T of the table at `table` to `value`; returns false past the object's end.
  template <class T>
  bool read(std::uint64_t table, std::uint64_t index, T& value) const {
    const char* const bytes = at(table + index * sizeof(T), sizeof(T));
    if (bytes == nullptr) return false;
    std::memcpy(&value, bytes, sizeof value);
    return true;
  }

  // Returns the address of a table from its entry in the dynamic section.
  std::uint64_t address(std::uint64_t entry) const { return dynamic_address(base_, entry); }

 private:
  std::uint64_t base_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> segments_;  // begin, length
};

// The tables of an object, from its dynamic section.
struct Tables {
  std::uint64_t symbols = 0, strings = 0, strings_size = 0;
  std::uint64_t calls = 0, calls_size = 0;  // relocations of the procedure linkage table
  std::uint64_t data = 0, data_size = 0;    // all other relocations
  std::uint64_t relative = 0;               // number of relocations at the beginning of `data` that have no symbol
  std::uint64_t hash = 0;                   // of the names that the object defines
};

Tables tables_of(const dl_phdr_info& object, const Image& image) {
  Tables tables;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const std::uint64_t dynamic = object.dlpi_addr + object.dlpi_phdr[i].p_vaddr;
    ElfW(Dyn) entry;
    for (std::uint64_t n = 0; image.read(dynamic, n, entry) && entry.d_tag != DT_NULL; ++n) {
      switch (entry.d_tag) {
        case DT_SYMTAB: tables.symbols = image.address(entry.d_un.d_ptr); break;
        case DT_STRTAB: tables.strings = image.address(entry.d_un.d_ptr); break;
        case DT_STRSZ: tables.strings_size = entry.d_un.d_val; break;
        case DT_JMPREL: tables.calls = image.address(entry.d_un.d_ptr); break;
        case DT_PLTRELSZ: tables.calls_size = entry.d_un.d_val; break;
        case DT_RELA: tables.data = image.address(entry.d_un.d_ptr); break;
        case DT_RELASZ: tables.data_size = entry.d_un.d_val; break;
        case DT_RELACOUNT: tables.relative = entry.d_un.d_val; break;
        case DT_GNU_HASH: tables.hash = image.address(entry.d_un.d_ptr); break;
        default: break;
      }
    }
  }
  return tables;
}

bool is_mpi_name(const char* name, std::size_t length) {
  for (const char* prefix : {"MPI_", "PMPI_", "MPIX_", "PMPIX_", "mpi_", "pmpi_", "mpix_", "pmpix_"}) {
    const std::size_t n = std::strlen(prefix);
    if (length > n && std::memcmp(name, prefix, n) == 0) return true;
  }
  return false;
}

// The names of an object.  Most of the symbols that its relocations refer to are none of MPI: that must be found fast.
class Symbols {
 public:
  Symbols(const Image& image, const Tables& tables)
      : symbols_(image.at(tables.symbols, 0)),
        count_(image.room(tables.symbols) / sizeof(ElfW(Sym))),
        strings_(image.at(tables.strings, tables.strings_size)),
        strings_size_(tables.strings_size) {}

  bool empty() const { return symbols_ == nullptr || strings_ == nullptr; }
  std::uint64_t count() const { return count_; }  // at most

  // Returns the name of an undefined MPI symbol, or an empty string.
  std::string_view undefined_mpi(std::uint64_t index) const {
    if (index >= count_) return {};
    ElfW(Sym) symbol;
    std::memcpy(&symbol, symbols_ + index * sizeof symbol, sizeof symbol);
    if (symbol.st_shndx != SHN_UNDEF) return {};
    if (symbol.st_name + std::uint64_t{1} >= strings_size_) return {};
    const char* const name = strings_ + symbol.st_name;
    const auto is = [name](int at, char c) { return (name[at] | 0x20) == c; };  // in either case
    if (!(is(0, 'm') && is(1, 'p')) && !(is(0, 'p') && is(1, 'm'))) return {};
    const std::size_t most = std::min<std::uint64_t>(strings_size_ - symbol.st_name, longest_name);
    const std::size_t length = strnlen(name, most);
    return length < most && is_mpi_name(name, length) ? std::string_view(name, length) : std::string_view();
  }

 private:
  const char* symbols_;
  std::uint64_t count_;
  const char* strings_;
  std::uint64_t strings_size_;
};

}  // namespace

namespace {

// Returns whether a shared library certainly needs no MPI symbol.  The symbols that it does not define are in front of
// those in its hash table.  Most libraries need few others, and have thousands of relocations.
bool needs_no_mpi(const dl_phdr_info& object, const Image& image, const Tables& tables, const Symbols& symbols) {
  std::uint32_t first = 0;
  // A program may have addresses for functions that others define: these are in its table.
  const bool is_program = object.dlpi_name == nullptr || object.dlpi_name[0] == '\0';
  if (is_program || tables.hash == 0 || !image.read(tables.hash, 1, first)) return false;
  if (first <= 1 || first > symbols.count()) return false;  // GNU ld writes 1 if an object defines no names
  for (std::uint32_t index = 1; index < first; ++index) {
    if (!symbols.undefined_mpi(index).empty()) return false;
  }
  return true;
}

}  // namespace

// Reads the relocations, because a symbol without one is not used, and because the number of symbols is not stored: a
// GNU hash table counts only the symbols that the object defines.
std::vector<Import> imports_of(const dl_phdr_info& object) {
  const Image image(object);
  const Tables tables = tables_of(object, image);
  std::map<std::string, std::uint64_t> found;
  const Symbols symbols(image, tables);
  if (tables.symbols == 0 || tables.strings == 0 || symbols.empty()) return {};
  if (needs_no_mpi(object, image, tables, symbols)) return {};
  const auto look_at = [&](std::uint64_t table, std::uint64_t size, std::uint64_t first) {
    const char* const all = image.at(table, size);
    if (all == nullptr) return;
    ElfW(Rela) relocation;
    for (std::uint64_t n = first; n < size / sizeof relocation; ++n) {
      std::memcpy(&relocation, all + n * sizeof relocation, sizeof relocation);
      const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
      if (index == 0) continue;
      const std::string_view name = symbols.undefined_mpi(index);
      if (name.empty()) continue;
      std::uint64_t bound = 0;
      // The application may have protected this memory.
      const auto* const where = reinterpret_cast<const void*>(object.dlpi_addr + relocation.r_offset);
      const bool is_inside = image.at(object.dlpi_addr + relocation.r_offset, sizeof bound) != nullptr;
      if (!is_inside || !read_memory(where, &bound, sizeof bound)) bound = 0;
      if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_64) bound -= static_cast<std::uint64_t>(relocation.r_addend);
      found.try_emplace(std::string(name), bound);
    }
  };
  look_at(tables.calls, tables.calls_size, 0);
  look_at(tables.data, tables.data_size, tables.relative);
  std::vector<Import> imports;
  imports.reserve(found.size());
  for (const auto& [symbol, bound] : found) imports.push_back({symbol, bound});
  return imports;
}

std::vector<Importer> loaded_importers(const std::vector<Module>& modules) {
  const auto add = [](dl_phdr_info* object, std::size_t, void* out) {
    Importer importer{{}, object->dlpi_addr, 0, imports_of(*object)};
    if (!importer.imports.empty()) static_cast<std::vector<Importer>*>(out)->push_back(std::move(importer));
    return 0;
  };
  std::vector<Importer> importers;
  dl_iterate_phdr(add, &importers);
  for (const Module& module : modules) {
    for (Importer& importer : importers) {
      if (importer.end != 0 || importer.begin != module.base) continue;
      importer = {module.path, module.begin, module.end, std::move(importer.imports)};
    }
  }
  // Removes objects that another thread has unloaded in between.
  importers.erase(std::remove_if(importers.begin(), importers.end(), [](const Importer& i) { return i.end == 0; }),
                  importers.end());
  return importers;
}

}  // namespace commlens
