// SPDX-License-Identifier: Apache-2.0
// Finds the call sites of Fortran programs, which call MPI through a binding library.  We count the C calls of the
// binding.  Their return addresses are in the binding, so without this all calls of a procedure would have one call
// site.
#include "core/mpi/fortran.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

#include "core/base/say.h"
#include "core/base/unwind.h"
#include "core/mpi/bind.h"
#include "core/mpi/fortran_forms.h"
#include "core/mpi/state.h"
#include "core/process/coverage.h"
#include "core/process/modules.h"
#include "core/state/events.h"
#include "core/state/paths.h"

extern "C" {
__thread commlens::FortranCall commlens_fortran_call;

enum {
#define FORTRAN(name, upper, number, op)
#include "generated/fortran.inc"
#undef FORTRAN
  fortran_name_count = FORTRAN_NAMES
};
extern void* commlens_fortran_slots[fortran_name_count * FORTRAN_FORMS];
__attribute__((visibility("hidden"))) void* commlens_bind_fortran(long entry) noexcept;
}

namespace commlens {

FortranBindings fortran_bindings{};

#if defined(COMMLENS_AARCH64)
// Each record holds the address of the next one and a return address.  The records of the binding lie between the frame
// of the C call and the stack pointer of the application's call, so that nothing else is read.
bool FortranCall::is_on_stack(const char* inner) const noexcept {
  const auto end = reinterpret_cast<std::uint64_t>(frame);
  for (auto at = reinterpret_cast<std::uint64_t>(inner); at % sizeof at == 0 && at < end;) {
    const auto* const record = reinterpret_cast<const std::uint64_t*>(at);
    if (without_signature(record[1]) == caller) return true;
    if (record[0] <= at) return false;
    at = record[0];
  }
  return false;
}
#endif

namespace {

// Text and no pointers: the loader would have to set these in every process, also where nothing is Fortran.
constexpr char procedures[][40] = {
#define FORTRAN(name, upper, number, op) #name,
#include "generated/fortran.inc"
#undef FORTRAN
};

// In the order of EACH_FORTRAN_FORM.
constexpr struct {
  char begin[2], end[16];
  bool is_upper;
} forms[FORTRAN_FORMS] = {
    {"", "_", false},      {"", "_f08_", false},       {"", "_f08ts_", false}, {"", "_f08ts_large_", false},
    {"", "", false},       {"", "__", false},          {"", "", true},         {"p", "_", false},
    {"p", "_f08_", false}, {"", "_f08_large_", false}, {"", "_cptr_", false}};

struct FortranName {
  char text[sizeof forms[0].begin + sizeof procedures[0] + sizeof forms[0].end];
};

FortranName fortran_name(long entry) noexcept {
  const auto& form = forms[entry % FORTRAN_FORMS];
  FortranName name{};
  std::snprintf(name.text, sizeof name.text, "%s%s%s", form.begin, procedures[entry / FORTRAN_FORMS], form.end);
  if (!form.is_upper) return name;
  for (char& c : name.text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::once_flag found_bindings;

// Also with the name of a vendor or a compiler: libmpi_ibm_mpifh.so, libmpifort_gnu_91.so.
bool is_fortran_binding(const std::string& path) noexcept {
  if (!is_mpi_library(path)) return false;
  const char* const base = path.c_str() + path.rfind('/') + 1;
  for (const char* part : {"mpifh", "usempi", "mpifort", "mpichfort", "mpichf90"}) {
    if (std::strstr(base, part) != nullptr) return true;
  }
  return false;
}

void find_bindings() noexcept try {
  for (const Module& m : loaded_modules()) {
    if (!is_fortran_binding(m.path)) continue;
    if (fortran_bindings.count == FortranBindings::capacity) return;
    fortran_bindings.range[fortran_bindings.count] = {m.begin, m.end};
    ++fortran_bindings.count;
    update_calls();
  }
} catch (const std::bad_alloc&) {
  say("no memory to find the Fortran binding; call sites of Fortran programs are addresses inside it");
}

int no_such_procedure() { return 0; }

// The part of locate() that concerns Fortran.
bool from_fortran(Op op, Site& site, const char* frame) noexcept {
  for (int i = 0; i < fortran_bindings.count; ++i) {
    if (site < fortran_bindings.range[i].begin || site >= fortran_bindings.range[i].end) continue;
    FortranCall& fortran = commlens_fortran_call;
    // The program called through a name that we do not define: the call site in the binding is better than none.
    if (!fortran.is_under_way(frame) || op == op::unknown) return true;
    if (fortran.op != op) return false;
    site = fortran.caller;
    fortran.caller = 0;
    return true;
  }
  return true;
}

}  // namespace

bool locate(Thread& thread, Op op, Site& site, const char* frame) noexcept {
  const Site caller = site;
  if (fortran_bindings.count != 0 && !from_fortran(op, site, frame)) return false;
  if (counts_events()) note_events(thread, event_key_outside(thread));
  if (has_paths()) {
    // Wrappers of different procedures can have the same frame address, so the procedure is part of the key.
    static_assert(std::size(op_facts) <= 1 << 10,
                  "the number of a procedure does not fit between address and path_bit");
    const Site key = frame_tells_sp ? caller : caller | Site{op} << 53;
    site = path_of(*thread.paths, key, site, frame);
    if (counts_events()) note_events(thread, make_key(0, 0, 0, uncounted_region));  // commlens' own
  }
  return true;
}

}  // namespace commlens

// Called by entry.S.  Returns the address to jump to.
void* commlens_bind_fortran(long entry) noexcept {
  using namespace commlens;
  const int saved = errno;
  std::call_once(found_bindings, find_bindings);
  const FortranName name = fortran_name(entry);
  void* next = next_definition(name.text).address;
  if (next == nullptr) {
    say("no loaded MPI library defines %s; the call does nothing", name.text);
    next = reinterpret_cast<void*>(no_such_procedure);
  }
  __atomic_store_n(&commlens_fortran_slots[entry], next, __ATOMIC_RELEASE);
  errno = saved;
  return next;
}
