// SPDX-License-Identifier: Apache-2.0
#include "core/process/modules.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace commlens {
namespace {

std::string executable_path() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

std::string hexadecimal(const unsigned char* bytes, std::size_t n) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < n; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

// Returns the GNU build id from the notes of one segment, in hexadecimal; empty: none.
std::string build_id_in(const char* notes, std::size_t bytes, std::size_t alignment) {
  const std::size_t mask = (alignment == 8 ? 8 : 4) - 1;
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t description = name + ((note.n_namesz + mask) & ~mask);
    const std::size_t next = description + ((note.n_descsz + mask) & ~mask);
    if (next > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      return hexadecimal(reinterpret_cast<const unsigned char*>(notes + description), note.n_descsz);
    }
    at = next;
  }
  return {};
}

// Returns 1, which ends the iteration, if there is no memory: no exception may pass libc's function, because its
// cleanup belongs to another unwinder, which would end the process.
int add_module(dl_phdr_info* info, std::size_t, void* out) noexcept try {
  Module m{info->dlpi_name, {}, info->dlpi_addr, ~std::uint64_t{0}, 0};
  if (m.path.empty()) m.path = executable_path();
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    const std::uint64_t at = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      m.begin = std::min<std::uint64_t>(m.begin, at);
      m.end = std::max<std::uint64_t>(m.end, at + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && m.build_id.empty()) {
      m.build_id = build_id_in(reinterpret_cast<const char*>(at), segment.p_memsz, segment.p_align);
    }
  }
  static_cast<std::vector<Module>*>(out)->push_back(m);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

}  // namespace

std::vector<Module> loaded_modules() {
  std::vector<Module> modules;
  if (dl_iterate_phdr(add_module, &modules) != 0) throw std::bad_alloc();
  std::sort(modules.begin(), modules.end(), [](const Module& a, const Module& b) { return a.begin < b.begin; });
  return modules;
}

Module executable_module() {
  std::vector<Module> modules;
  const auto first = [](dl_phdr_info* info, std::size_t size, void* out) { return add_module(info, size, out) + 1; };
  dl_iterate_phdr(first, &modules);
  return modules.empty() ? Module{} : modules.front();
}

const Module* module_at(const std::vector<Module>& modules, std::uint64_t address) {
  auto at = std::upper_bound(modules.begin(), modules.end(), address,
                             [](std::uint64_t a, const Module& m) { return a < m.begin; });
  while (at != modules.begin()) {
    --at;
    if (address < at->end) return &*at;
  }
  return nullptr;
}

}  // namespace commlens
