// SPDX-License-Identifier: Apache-2.0
// Shows the program only those MPI names that its MPI library defines (docs/decisions/0008-three-interfaces.md).
//
// Our library defines every procedure of the standard; the MPI library has those of its version.  A program may check
// what exists with dlsym() or, as mpi4py does, with weak references.  A name that leads nowhere would mislead it.
// Before any code of the program runs, we therefore remove the names that the MPI library lacks from our own symbol
// table.  The loader ignores symbols whose value is 0.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/privileged.h"
#include "core/base/processor.h"
#include "core/mpi/static_definitions.h"
#include "core/process/dynamic_section.h"
#include "core/process/processes.h"
#include "core/process/symbols.h"

namespace commlens {

// The linker defines it; a program without dynamic libraries has none.
extern "C" __attribute__((weak, visibility("hidden"))) ElfW(Dyn) own_dynamic_section[] __asm__("_DYNAMIC");

namespace {

// The dynamic symbols that a shared object file defines; empty if the file is something else.
class NamesInFile {
 public:
  explicit NamesInFile(const std::string& path);
  ~NamesInFile();
  NamesInFile(const NamesInFile&) = delete;
  NamesInFile& operator=(const NamesInFile&) = delete;

  bool empty() const noexcept { return names_.empty(); }
  bool has(std::string_view name) const { return names_.count(name) != 0; }

 private:
  bool inside(const Elf64_Shdr& s) const noexcept { return s.sh_offset <= size_ && s.sh_size <= size_ - s.sh_offset; }

  void* file_ = nullptr;
  std::size_t size_ = 0;
  std::unordered_set<std::string_view> names_;
};

NamesInFile::NamesInFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat st;
  if (fstat(fd, &st) == 0 && static_cast<std::size_t>(st.st_size) >= sizeof(Elf64_Ehdr)) {
    size_ = static_cast<std::size_t>(st.st_size);
    file_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file_ == MAP_FAILED) file_ = nullptr;
  }
  close(fd);
  if (file_ == nullptr) return;
  const char* const bytes = static_cast<const char*>(file_);
  Elf64_Ehdr head;
  std::memcpy(&head, bytes, sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return;
  if (head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shoff > size_ ||
      head.e_shnum > (size_ - head.e_shoff) / sizeof(Elf64_Shdr)) {
    return;
  }
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  std::memcpy(sections.data(), bytes + head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& symbols : sections) {
    if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[symbols.sh_link];
    if (!inside(strings) || !inside(symbols)) return;
    const char* const text = bytes + strings.sh_offset;
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, bytes + symbols.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings.sh_size) continue;
      names_.emplace(text + symbol.st_name, strnlen(text + symbol.st_name, strings.sh_size - symbol.st_name));
    }
    return;
  }
}

NamesInFile::~NamesInFile() {
  if (file_ != nullptr) munmap(file_, size_);
}

// Returns whether a procedure is newer than MPI 3.1; so are all large-count forms, which end in _c.
bool is_recent(std::string_view name) {
  static constexpr std::string_view recent[] = {
#define RECENT(name) #name,
#include "generated/recent.inc"
#undef RECENT
  };
  if (name.size() > 2 && name.substr(name.size() - 2) == "_c") return true;
  for (const std::string_view r : recent) {
    if (name == r) return true;
  }
  return false;
}

// Returns the path of the MPI library that the program will probably load later, or an empty text.  Searches where the
// loader does, beside the launcher that started this process, and in the system's library folders.
std::string library_to_come() {
  std::vector<std::string> places;
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) places.emplace_back(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  static const char* const beside[] = {"/lib", "/lib64", "/lib/" COMMLENS_MULTIARCH};
  constexpr int generations = 4;  // a shell or a script may stand between the launcher and us
  pid_t process = getppid();
  for (int i = 0; i < generations && process > 1; ++i) {
    char program[PATH_MAX];
    const ssize_t n = readlink(("/proc/" + std::to_string(process) + "/exe").c_str(), program, sizeof program);
    if (n > 0) {
      std::string prefix(program, static_cast<std::size_t>(n));
      for (int up = 0; up < 2; ++up) prefix.resize(prefix.find_last_of('/') + 1 == 0 ? 0 : prefix.find_last_of('/'));
      for (const char* const lib : beside) places.push_back(prefix + lib);
    }
    process = facts_of(process).parent;
  }
  for (const char* const lib : beside) places.push_back(std::string("/usr") + lib);
  for (const std::string& place : places) {
    for (const char* const soname : {COMMLENS_MPI_SONAMES}) {
      std::string file = place + "/" + soname;
      if (access(file.c_str(), R_OK) == 0) return file;
    }
  }
  return {};
}

// Returns the number of our dynamic symbols.  The symbol table does not contain it, but the last chain of the hash
// table ends with the last symbol.
std::size_t symbol_count(const std::uint32_t* hash) {
  const std::uint32_t buckets = hash[0], first = hash[1], bloom_words = hash[2];
  const std::uint32_t* const bucket = hash + 4 + std::size_t{2} * bloom_words;
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t b = 0; b < buckets; ++b) last = bucket[b] > last ? bucket[b] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1u) == 0) ++last;
  return last + 1;
}

// True for MPI_SEND, false for MPI_Send.
bool is_fortran(const char* name) {
  for (const char* c = name + 5; *c != '\0'; ++c) {
    if (*c >= 'a' && *c <= 'z') return false;
  }
  return true;
}

// True for the names of procedures.  Most of our other symbols begin in another way.
bool is_mpi(const char* name) {
  return (name[0] == 'M' && std::strncmp(name, "MPI_", 4) == 0) ||
         (name[0] == 'P' && std::strncmp(name, "PMPI_", 5) == 0);
}

void hide(const std::function<bool(const char*)>& lacking) {
  ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;
  Dl_info self{};
  if (own_dynamic_section == nullptr || dladdr(own_dynamic_section, &self) == 0) return;
  for (const ElfW(Dyn)* d = own_dynamic_section; d->d_tag != DT_NULL; ++d) {
    const std::uint64_t at = dynamic_address(reinterpret_cast<std::uint64_t>(self.dli_fbase), d->d_un.d_ptr);
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<ElfW(Sym)*>(at);
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(at);
    if (d->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const std::uint32_t*>(at);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return;
  const std::size_t count = symbol_count(hash);
  std::vector<ElfW(Sym)*> going;
  for (std::size_t i = 0; i < count; ++i) {
    const char* const name = strings + symbols[i].st_name;
    if (symbols[i].st_value == 0 || !is_mpi(name) || is_fortran(name)) continue;
    if (lacking(name)) going.push_back(&symbols[i]);
  }
  if (going.empty()) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(symbols) & ~(page - 1);
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(symbols + count) + page - 1) & ~(page - 1);
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0) return;
  for (ElfW(Sym)* const symbol : going) symbol->st_value = 0;
  mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ);
}

}  // namespace

__attribute__((constructor)) static void show_what_is_there() try {
  if (is_static_library()) return;  // its names are the program's
  // Looks for a name that neither our library nor a tool between it and the MPI library defines.
  const void* const loaded = dlsym(RTLD_NEXT, "PMPI_Get_library_version");
  if (loaded != nullptr && is_in_object(loaded)) {
    const char* const path = object_of(loaded);
    void* const library = *path == '\0' ? nullptr : dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr) return;    // the program itself contains the MPI library
    const DefinedNames names(loaded);  // dlsym() takes longer, but looks also into the objects that this one needs
    hide([&](const char* name) { return !names.has(name) && dlsym(library, name) == nullptr; });
    dlclose(library);
    return;
  }
  // Environment and parent process determine where the library may be; a privileged process must not trust them.
  const std::string file = commlens_is_privileged() ? std::string() : library_to_come();
  const NamesInFile names(file);
  if (!names.empty()) {
    hide([&](const char* name) { return !names.has(name); });
  } else {
    // The library is unknown: shows what every MPI library has.
    hide([](const char* name) { return is_recent(name[0] == 'P' ? name + 1 : name); });
  }
} catch (...) {
  return;  // out of memory in a process that has only begun: the program will notice itself
}

}  // namespace commlens
