// SPDX-License-Identifier: Apache-2.0
// The measurement begins inside MPI_Init and ends inside MPI_Finalize.
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <new>

#include "core/cold/say.h"
#include "core/cold/threads.h"
#include "core/cold/ticks.h"
#include "core/mpi/job.h"
#include "core/mpi/wrap.h"

namespace commlens {

Registry* registry = nullptr;
HandleMap comms, windows, files;
RequestTable requests;
Site site_mask = ~Site{0};
Job job;

namespace {

const Options* options_in_force = nullptr;
pid_t process = 0;

void add_predefined(MPI_Comm comm, char letter, Identity identity, int leader) {
  CommRecord record;
  CommView& view = record.view;
  api.Comm_rank(comm, &view.rank);
  api.Comm_size(comm, &view.size);
  view.blocks = view.size;
  record.kind = CommKind::intra;
  record.letter = letter;
  record.identity = identity;
  record.leader = leader;
  const CommView& known = registry->add(std::move(record), false);
  comms.put(bits(comm), const_cast<CommView*>(&known));
}

// Runs what a wrapper adds to a call, without the call: the fastest of some batches.
Ticks estimated_call() noexcept {
  constexpr int batches = 8, calls = 256;
  Table table{};
  Ticks best = ~Ticks{0};
  Cell cell{};
  cell.key = make_key(1, 1, 1, 0);
  Cell* index[2] = {&cell, nullptr};
  // One cell of an index that has room for it: the path of a call that was seen before.
  table.index = index;
  table.capacity = 1;
  table.used = 1;
  for (int b = 0; b < batches; ++b) {
    const Ticks begin = now();
    for (int i = 0; i < calls; ++i) {
      const Ticks start = now();
      const Ticks end = now();
      record(table, cell.key, cell.site, end - start, 8, 8);
      static_cast<void>(comms.find(bits(api.comm_world)));
    }
    best = std::min(best, now() - begin);
  }
  return best / calls;
}

void say_warnings() {
  for (const std::string& warning : options().warnings()) say("%s", warning.c_str());
}

// A process that ends without MPI_Finalize takes its counts with it; say so.  A forked child is none of ours.
void check_finalized() {
  if (getpid() != process) return;
  if (job.ready) {
    say("rank %d ended without MPI_Finalize: no profile is written", job.rank);
  } else if (job.rank < 0 && first_thread() != nullptr && launcher_rank() <= 0) {
    say("MPI was used without MPI_Init (sessions only): that is not profiled yet, no profile is written");
  }
}

}  // namespace

void read_options() { options_in_force = new Options(Options::read()); }
const Options& options() noexcept { return *options_in_force; }

bool prepare() noexcept try {
  choose_clock();
  if (!load_api()) return false;
  site_mask = options().on(Option::callsites) ? ~Site{0} : 0;
  registry = new Registry();
  process = getpid();
  return true;
} catch (const std::bad_alloc&) {
  say("no memory to start; running unprofiled");
  return false;
}

namespace hand {

void initialised(Ticks before, Ticks after) noexcept try {
  if (job.ready) return;
  job.init = after - before;
  api.Comm_rank(api.comm_world, &job.rank);
  api.Comm_size(api.comm_world, &job.size);
  api.Comm_group(api.comm_world, &job.group);
  add_predefined(api.comm_world, letter_world, mixed(letter_world), 0);
  add_predefined(api.comm_self, letter_self, combine(letter_self, static_cast<Identity>(job.rank)), job.rank);
  if (sched_getaffinity(0, sizeof job.cpus, &job.cpus) != 0) CPU_ZERO(&job.cpus);
  if (getcwd(job.directory, sizeof job.directory) == nullptr) job.directory[0] = '\0';
  if (job.rank == 0) say_warnings();
  job.own_call = estimated_call();
  job.ready = true;
  job.started = now();
  job.own_init = job.started - after;
} catch (const std::bad_alloc&) {
  say("rank %d: no memory to start", job.rank);
}

void finalising() noexcept {
  if (!job.ready) return;
  collect(now());
  job.ready = false;
  stop_measuring();
  api.Group_free(&job.group);
}

void aborting(MPI_Comm, int errorcode) noexcept {
  if (!job.ready) return;
  say("rank %d called MPI_Abort with code %d: no profile is written", job.rank, errorcode);
  job.ready = false;
}

}  // namespace hand

// A procedure of the unwinder that runs: only it knows its context, and there may be several in a process.  One that is
// linked into the program and hidden cannot be asked; there every wrapper ends the call.
static void* of_module(const void* address, const char* name) noexcept {
  Dl_info caller, found;
  if (dladdr(address, &caller) == 0) return nullptr;
  void* const handle = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const symbol = dlsym(handle == nullptr ? RTLD_DEFAULT : handle, name);
  if (handle != nullptr) dlclose(handle);
  const bool same = symbol != nullptr && dladdr(symbol, &found) != 0 && found.dli_fbase == caller.dli_fbase;
  return same ? symbol : nullptr;
}

// The personality routine of the wrappers: called by the application's unwinder when it passes a frame of ours.
extern "C" __attribute__((visibility("hidden"), used)) _Unwind_Reason_Code commlens_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context* context) {
  if ((actions & _UA_CLEANUP_PHASE) == 0 || current_thread == nullptr) return _URC_CONTINUE_UNWIND;
  // The frame pointer of the frame that is left.
  constexpr int rbp = 6;
  const auto get_register = reinterpret_cast<decltype(&_Unwind_GetGR)>(
      of_module(__builtin_extract_return_addr(__builtin_return_address(0)), "_Unwind_GetGR"));
  if (get_register == nullptr ||
      get_register(context, rbp) == reinterpret_cast<_Unwind_Word>(current_thread->outermost)) {
    current_thread->outermost = nullptr;
  }
  return _URC_CONTINUE_UNWIND;
}

// At exit, and when the library is unloaded.
__attribute__((destructor)) static void at_exit() { check_finalized(); }

}  // namespace commlens
