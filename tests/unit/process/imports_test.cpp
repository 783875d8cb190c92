// SPDX-License-Identifier: Apache-2.0
// Objects are made in memory here, as a loader would have mapped them, so that they can be wrong in any way.
#include "core/process/imports.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>

#include "tests/unit/check.h"

namespace commlens {
namespace {

// Memory with one readable segment, and the tables of an object in it.
class Object {
 public:
  Object() { names_.push_back('\0'); }

  // Adds a symbol and returns its index.
  std::uint32_t symbol(const std::string& name, bool defined = false) {
    ElfW(Sym) s{};
    s.st_name = static_cast<ElfW(Word)>(names_.size());
    s.st_shndx = defined ? 7 : static_cast<ElfW(Section)>(SHN_UNDEF);
    names_ += name;
    names_.push_back('\0');
    symbols_.push_back(s);
    return static_cast<std::uint32_t>(symbols_.size() - 1);
  }

  // Lets a call through the linkage table go to `bound`; `data`: a pointer elsewhere.
  void relocate(std::uint32_t symbol, std::uint64_t bound, bool data = false) {
    ElfW(Rela) r{};
    r.r_offset = got_.size() * sizeof bound;  // until built()
    r.r_info = ELF64_R_INFO(std::uint64_t{symbol}, data ? R_X86_64_64 : R_X86_64_JUMP_SLOT);
    r.r_addend = data ? 16 : 0;
    got_.push_back(bound + static_cast<std::uint64_t>(r.r_addend));
    (data ? data_ : calls_).push_back(r);
  }

  // Adds a hash table of the symbols from this one on.
  void hash_from(std::uint32_t first) { hash_ = {1, first, 1, 0}; }

  // The object in memory.  relative: its dynamic section still has offsets in place of addresses.
  dl_phdr_info& built(bool relative = false) {
    memory_.clear();
    const std::uint64_t got = put(got_);
    for (auto* relocations : {&calls_, &data_}) {
      for (ElfW(Rela) & r : *relocations) r.r_offset += got;
    }
    const std::uint64_t symbols = put(symbols_), strings = put(names_), calls = put(calls_), data = put(data_);
    const std::uint64_t hash = put(hash_);
    const std::uint64_t dynamic = memory_.size();
    const std::uint64_t entries = (hash_.empty() ? 9 : 10) * sizeof(ElfW(Dyn));
    memory_.reserve(memory_.size() + entries);
    const std::uint64_t base = reinterpret_cast<std::uint64_t>(memory_.data());
    const auto add = [&](std::int64_t tag, std::uint64_t value) {
      ElfW(Dyn) d{};
      d.d_tag = tag;
      d.d_un.d_val = value;
      const char* const bytes = reinterpret_cast<const char*>(&d);
      memory_.insert(memory_.end(), bytes, bytes + sizeof d);
    };
    const std::uint64_t at = relative ? 0 : base;
    add(DT_SYMTAB, at + symbols);
    add(DT_STRTAB, at + strings);
    add(DT_STRSZ, names_.size());
    add(DT_JMPREL, at + calls);
    add(DT_PLTRELSZ, calls_.size() * sizeof(ElfW(Rela)));
    add(DT_RELA, at + data);
    add(DT_RELASZ, data_.size() * sizeof(ElfW(Rela)));
    add(DT_RELACOUNT, 0);
    if (!hash_.empty()) add(DT_GNU_HASH, at + hash);
    add(DT_NULL, 0);
    std::memset(segments_, 0, sizeof segments_);
    segments_[0].p_type = PT_LOAD;
    segments_[0].p_flags = PF_R;
    segments_[0].p_memsz = memory_.size();
    segments_[1].p_type = PT_DYNAMIC;
    segments_[1].p_vaddr = dynamic;
    segments_[1].p_memsz = entries;
    info_ = {};
    info_.dlpi_addr = base;
    info_.dlpi_name = "made.so";
    info_.dlpi_phdr = segments_;
    info_.dlpi_phnum = 2;
    return info_;
  }

  std::vector<char>& memory() { return memory_; }
  ElfW(Phdr) * segments() { return segments_; }

 private:
  template <class T>
  std::uint64_t put(const T& table) {
    while (memory_.size() % 16 != 0) memory_.push_back('\0');
    const std::uint64_t offset = memory_.size();
    const char* const bytes = reinterpret_cast<const char*>(table.data());
    memory_.insert(memory_.end(), bytes, bytes + table.size() * sizeof *table.data());
    return offset;
  }

  std::vector<char> memory_;
  std::vector<ElfW(Sym)> symbols_{1};
  std::string names_;
  std::vector<ElfW(Rela)> calls_, data_;
  std::vector<std::uint64_t> got_;
  std::vector<std::uint32_t> hash_;
  ElfW(Phdr) segments_[2];
  dl_phdr_info info_{};
};

std::string listed(const std::vector<Import>& imports) {
  std::ostringstream text;
  for (const Import& i : imports) text << i.symbol << ":" << i.bound << " ";
  return text.str();
}

Object usual() {
  Object object;
  object.relocate(object.symbol("printf"), 1);
  object.relocate(object.symbol("MPI_Send"), 2);
  object.symbol("MPI_Recv");  // nothing uses it
  object.relocate(object.symbol("MPI_Mine", true), 3);
  object.relocate(object.symbol("mpi_bcast_"), 4, true);
  object.relocate(object.symbol("PMPIX_Query"), 5);
  object.relocate(object.symbol("mpirun"), 6);
  object.relocate(object.symbol("MPI_"), 7);
  return object;
}

constexpr char usual_imports[] = "MPI_Send:2 PMPIX_Query:5 mpi_bcast_:4 ";

}  // namespace

TEST(imports_are_the_undefined_mpi_names_that_something_uses_with_where_they_lead) {
  Object object = usual();
  CHECK_EQ(listed(imports_of(object.built())), usual_imports);
}

TEST(offsets_the_loader_left_alone_are_understood) {
  Object object = usual();
  CHECK_EQ(listed(imports_of(object.built(true))), usual_imports);
}

TEST(a_library_that_needs_no_mpi_is_told_by_its_hash_table) {
  Object object = usual();
  // GNU ld writes 1 where no symbol is defined.
  constexpr std::uint32_t all = 9, beyond_all = ~std::uint32_t{0}, none_defined = 1;
  for (const std::uint32_t first : {all, beyond_all, none_defined}) {
    object.hash_from(first);
    CHECK_EQ(listed(imports_of(object.built())), usual_imports);
  }
  object.hash_from(2);  // so it defines all but printf
  CHECK_EQ(listed(imports_of(object.built())), "");
  // The functions of others of which a program takes addresses are in its table.
  dl_phdr_info& program = object.built();
  program.dlpi_name = "";
  CHECK_EQ(listed(imports_of(program)), usual_imports);
}

TEST(a_name_used_twice_is_told_once) {
  Object object;
  const std::uint32_t send = object.symbol("MPI_Send");
  object.relocate(send, 8);
  object.relocate(send, 9, true);
  CHECK_EQ(listed(imports_of(object.built())), "MPI_Send:8 ");
}

TEST(an_object_without_tables_imports_nothing) {
  dl_phdr_info nothing{};
  CHECK_EQ(listed(imports_of(nothing)), "");
  Object object = usual();
  dl_phdr_info& info = object.built();
  object.segments()[1].p_type = PT_NOTE;
  CHECK_EQ(listed(imports_of(info)), "");
}

TEST(what_cannot_be_read_is_not_read) {
  Object object = usual();
  dl_phdr_info& info = object.built();
  object.segments()[0].p_flags = PF_X;
  CHECK_EQ(listed(imports_of(info)), "");
}

TEST(a_table_that_reaches_past_the_object_is_left_out) {
  Object object = usual();
  dl_phdr_info& info = object.built();
  // The relocations of data begin inside and end, so they say, far outside; those of calls are fine.
  for (char* at = object.memory().data() + object.segments()[1].p_vaddr;; at += sizeof(ElfW(Dyn))) {
    ElfW(Dyn) entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.d_tag != DT_RELASZ) continue;
    entry.d_un.d_val = ~std::uint64_t{0} / 2;
    std::memcpy(at, &entry, sizeof entry);
    break;
  }
  CHECK_EQ(listed(imports_of(info)), "MPI_Send:2 PMPIX_Query:5 ");
}

TEST(no_damage_to_an_object_makes_us_read_outside_it) {
  // Every read outside is an error of the address sanitizer's build.
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same objects every time
  for (int round = 0; round < 20000; ++round) {
    Object object = usual();
    dl_phdr_info& info = object.built();
    std::vector<char> whole = object.memory();
    for (int n = 0; n < 1 + round % 8; ++n) {
      object.memory()[random() % object.memory().size()] = static_cast<char>(random());
    }
    if (round % 16 == 0) object.segments()[0].p_memsz = random() % whole.size();
    for (const Import& i : imports_of(info)) CHECK(i.symbol.size() > 4);
  }
}

TEST(objects_that_are_loaded_can_all_be_read) {
  for (const Importer& i : loaded_importers(loaded_modules())) {
    CHECK(!i.path.empty() && i.begin < i.end);
    CHECK(std::is_sorted(i.imports.begin(), i.imports.end(),
                         [](const Import& a, const Import& b) { return a.symbol < b.symbol; }));
  }
}

}  // namespace commlens
