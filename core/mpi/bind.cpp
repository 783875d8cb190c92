// SPDX-License-Identifier: Apache-2.0
// Decides at the first call of each MPI name where that name leads.
#include "core/mpi/bind.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "core/base/privileged.h"
#include "core/base/say.h"
#include "core/job/annotate.h"
#include "core/job/counting.h"
#include "core/mpi/barriers.h"
#include "core/mpi/state.h"
#include "core/mpi/static_definitions.h"
#include "core/process/dynamic_section.h"
#include "core/process/symbols.h"
#include "core/state/regions.h"

extern "C" {
extern void* commlens_slots[2 * commlens::slot_count];
// Of libcommlens.so: called by the libcommlens.a of the program, which measures instead of it.
__attribute__((visibility("default"))) void commlens_stand_aside() noexcept;
__attribute__((visibility("hidden"))) void* commlens_bind(long entry) noexcept;
}

namespace commlens {

void wrap_p2p(void* wrappers[]) noexcept;
void wrap_collective(void* wrappers[]) noexcept;
void wrap_neighbor(void* wrappers[]) noexcept;
void wrap_rma(void* wrappers[]) noexcept;
void wrap_io(void* wrappers[]) noexcept;
void wrap_completion(void* wrappers[]) noexcept;
void wrap_comm(void* wrappers[]) noexcept;
void wrap_other(void* wrappers[]) noexcept;
void wrap_tool(void* wrappers[]) noexcept;

void* next_definitions[2 * slot_count];

namespace {

const char* const names[] = {
#define ENTRY(name, slot) "P" #name,
#include "generated/entries.inc"
#undef ENTRY
};

void* wrappers[2 * slot_count];
void* with_barrier[2 * slot_count];  // null: no barrier before calls of this entry
std::atomic<bool> measuring{false};
std::atomic<bool> has_measured{false};
std::atomic<bool> stands_aside{false};
std::once_flag started;

// Returns whether a loaded object lists our library as needed (DT_NEEDED).
bool is_linked() noexcept {
  const auto names_us = [](dl_phdr_info* info, std::size_t, void*) {
    const ElfW(Dyn)* dynamic = nullptr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    const char* strings = nullptr;
    for (const ElfW(Dyn)* d = dynamic; d != nullptr && d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == DT_STRTAB)
        strings = reinterpret_cast<const char*>(dynamic_address(info->dlpi_addr, d->d_un.d_ptr));
    }
    for (const ElfW(Dyn)* d = dynamic; strings != nullptr && d != nullptr && d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == DT_NEEDED && std::strcmp(strings + d->d_un.d_val, "libcommlens.so") == 0) return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(names_us, nullptr) != 0;
}

const char* base_name(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Loads the MPI library if our library was linked before it and the linker then dropped it as not needed (--as-needed,
// the default of some compilers).  If our library is only preloaded, it never brings MPI into a process.  Repeated
// until an MPI library is there, because the first name may be looked up before.
bool bring_mpi_library() noexcept {
  static std::atomic<bool> is_here{false};
  if (is_here.load()) return true;
  if (!is_linked()) return false;
  for (const char* soname : {COMMLENS_MPI_SONAMES}) {
    if (!is_here.load() && dlopen(soname, RTLD_LAZY | RTLD_GLOBAL) != nullptr) is_here.store(true);
  }
  return is_here.load();
}

Definition find(const char* name, const void* behind) noexcept {
  const Definition found = find_symbol(name, behind);
  if (found.address == nullptr && is_static_library()) return {commlens_static_definition(name), "", false};
  return found.address == nullptr && bring_mpi_library() ? find_symbol(name, behind) : found;
}

struct Interface {
  std::string family;  // empty: unknown
  std::string name;
};

// Returns the name of a library that translates the calls of one interface to those of another; null: there is none.
// The interface of the program is then not that of the MPI library, whose symbols are here as well.
const char* translator() noexcept {
  const char* const library = base_name(next_definition("MPI_Init").object);
  if (std::strncmp(library, "libmuk.", 7) == 0) return "Mukautuva";
  if (std::strncmp(library, "libmpitrampoline.", 17) == 0) return "MPItrampoline";
  if (std::strncmp(library, "libwi4mpi", 9) == 0 || std::getenv("WI4MPI_TO") != nullptr) return "Wi4MPI";
  return nullptr;
}

// Returns the binary interface of the MPI library that is loaded.
Interface loaded_interface() {
  if (const char* const name = translator(); name != nullptr) {
    return {"", std::string(name) + ", which translates calls to another MPI library"};
  }
  const Definition function = next_definition("PMPI_Get_library_version");
  if (function.address == nullptr) return {"", "an MPI library of unknown version"};
  // The standard defines this library name for its interface; which library implements it does not matter.
  if (std::strncmp(base_name(function.object), "libmpi_abi.", 11) == 0) return {"abi", "the standard ABI"};
  if (data_definition("ompi_mpi_comm_world") != nullptr) return {"openmpi", "Open MPI"};
  const auto get_library_version = reinterpret_cast<int (*)(char*, int*)>(function.address);
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";
  int length = 0;
  if (get_library_version(text, &length) == MPI_SUCCESS) {
    for (const char* mark : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH", "HPE HMPT"}) {
      if (std::strstr(text, mark) != nullptr) return {"mpich", "MPICH or a library with its interface"};
    }
  }
  return {"", std::string(text).substr(0, 40)};
}

std::atomic<bool> explained{false};  // a message has explained why there is no profile, or a name of ours was called

void start() noexcept try {
  explained.store(true);
  read_options();  // a privileged process gets "off"
  if (!options().on(Option::enable) || stands_aside.load()) return;
  if (next_definition("PMPI_Init").address == nullptr) return;  // commlens_bind says which name is missing
  const Interface interface = loaded_interface();
  if (interface.family != COMMLENS_FAMILY) {
    if (launcher_rank() <= 0) {
      const std::string remedy = interface.family.empty() ? "" : ". Set COMMLENS_MPI=" + interface.family;
      say("the application uses %s, but this libcommlens.so is built for %s: running unprofiled%s",
          interface.name.c_str(), COMMLENS_FAMILY_NAME, remedy.c_str());
    }
    return;
  }
  if (options().text(Option::waiting) == "barrier") {
    add_barriers(with_barrier);
    if (launcher_rank() <= 0)
      say("COMMLENS_WAITING=barrier adds a barrier before each blocking collective: this run is slower, and its timing "
          "differs");
  }
  if (!prepare()) return;
  for (const auto part : {wrap_p2p, wrap_collective, wrap_neighbor, wrap_rma, wrap_io, wrap_completion, wrap_comm,
                          wrap_other, wrap_tool}) {
    part(wrappers);
  }
  measuring.store(true);
  has_measured.store(true);
} catch (...) {
  say("could not start; running unprofiled");
}

// Returns whether an entry belongs to the tool information interface, which outlives MPI.  It stays wrapped, because
// the MPI library does not know the handles that commlens has given out.
bool is_of_tools(long entry) noexcept { return std::strncmp(names[entry / 2], "PMPI_T_", 7) == 0; }

int no_such_procedure() { return MPI_ERR_OTHER; }

}  // namespace

Definition next_definition(const char* name) noexcept { return find(name, commlens_slots); }

void* data_definition(const char* name) noexcept { return find(name, nullptr).address; }

void stop_measuring() noexcept {
  measuring.store(false);
  stop_annotating();
  for (int i = 0; i < 2 * slot_count; ++i) {
    if (is_of_tools(i)) continue;
    void** const definitions = with_barrier[i] != nullptr ? behind_barriers : next_definitions;
    void* const next = __atomic_load_n(&definitions[i], __ATOMIC_RELAXED);
    if (next != nullptr) __atomic_store_n(&commlens_slots[i], next, __ATOMIC_RELEASE);
  }
}

void say_when_bypassed() noexcept {
  if (commlens_is_privileged() || explained.load() || launcher_rank() > 0) return;
  const auto initialized = reinterpret_cast<int (*)(int*)>(find_symbol("PMPI_Initialized", commlens_slots).address);
  int used = 0;
  if (initialized == nullptr || initialized(&used) != 0 || used == 0) return;
  read_options();
  if (!options().on(Option::enable)) return;
  say("the program looked up MPI procedures in the MPI library itself with dlsym, so its calls bypass commlens: not "
      "profiled");
}

// A libcommlens.so may be loaded into a program with libcommlens.a: by commlens-run, or into all programs of a machine.
// Each call would count in both.  Only the archive knows the program's regions.
static void measure_alone() noexcept {
  const Definition shared = next_definition("commlens_stand_aside");
  if (shared.address != nullptr) reinterpret_cast<void (*)() noexcept>(shared.address)();
}

// Prints a message if our library is linked after the MPI library and is therefore never called.  Otherwise the user
// would see no reason why there is no profile.  In a program without MPI, PMPI_Init is ours, and there is nothing to
// print.
__attribute__((constructor)) static void check_order() {
  if (commlens_is_privileged()) return;
  program_begins();
  may_use_barrier();
  remember_stderr();  // a program may close it, and reuse the descriptor, before it calls MPI
  if (is_static_library()) return measure_alone();  // the linker takes it only where calls lead to it
  check_annotations();
  // dladdr() would compare all symbols of both objects.
  const void* const init = dlsym(RTLD_DEFAULT, "PMPI_Init");
  if (init == nullptr || !is_in_object(init) || are_in_one_object(init, commlens_slots)) return;
  explained.store(true);
  if (launcher_rank() <= 0) {
    say("libcommlens.so is linked after the MPI library (%s), so calls bypass it: not profiling. Link it "
        "before the MPI library, or start the program with commlens-run",
        shown_object_of(init));
  }
}

}  // namespace commlens

void commlens_stand_aside() noexcept { commlens::stands_aside.store(true); }

// Called by entry.S.  Returns the address to jump to.
void* commlens_bind(long entry) noexcept {
  using namespace commlens;
  const int saved = errno;
  std::call_once(started, start);
  if (!measuring.load()) stop_annotating();
  const char* const name = names[entry / 2] + (entry % 2 == 0 ? 1 : 0);
  void* next = next_definition(name).address;
  if (next == nullptr) {
    say(is_static_library()
            ? "the MPI library does not define %s, or was not linked with -Wl,--whole-archive; the call "
              "fails"
            : "no loaded MPI library defines %s; the call fails",
        name);
    next = reinterpret_cast<void*>(no_such_procedure);
  }
  const bool is_wrapped = is_of_tools(entry) ? has_measured.load() : measuring.load();
  void* const target = is_wrapped && wrappers[entry] != nullptr ? wrappers[entry] : next;
  if (with_barrier[entry] != nullptr) {
    __atomic_store_n(&behind_barriers[entry], next, __ATOMIC_RELAXED);
    next = with_barrier[entry];
  }
  __atomic_store_n(&next_definitions[entry], next, __ATOMIC_RELAXED);  // visible to all that jump through the slot
  __atomic_store_n(&commlens_slots[entry], target, __ATOMIC_RELEASE);
  errno = saved;
  return target;
}
