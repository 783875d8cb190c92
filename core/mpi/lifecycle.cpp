// SPDX-License-Identifier: Apache-2.0
// Begins and ends the measurement.  It begins inside MPI_Init or the first MPI_Session_init.  It ends inside
// MPI_Finalize or, if sessions are still open or are all there is, when the process ends.
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <ctime>
#include <mutex>
#include <new>

#include "core/arena/arena.h"
#include "core/base/say.h"
#include "core/base/ticks.h"
#include "core/job/annotate.h"
#include "core/job/counting.h"
#include "core/job/crash_copy.h"
#include "core/job/hang_signal.h"
#include "core/job/job.h"
#include "core/job/pcontrol.h"
#include "core/mpi/datatypes.h"
#include "core/mpi/family_tuning.h"
#include "core/mpi/finalize.h"
#include "core/mpi/finalize_facts.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/lifecycle_calls.h"
#include "core/mpi/peers.h"
#include "core/mpi/pml_hook.h"
#include "core/mpi/pvars.h"
#include "core/mpi/wrap.h"
#include "core/process/symbols.h"
#include "core/state/events.h"
#include "core/state/messages.h"
#include "core/state/online.h"
#include "core/state/paths.h"
#include "core/state/peers.h"
#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"

namespace commlens {

Registry* registry = nullptr;
HandleMap comms, windows, files;
RequestTable requests;
Site site_mask = ~Site{0};
bool calls_are_plain = false;
bool must_locate_calls = false;

void update_calls() noexcept {
  const bool has_binding = fortran_bindings.count != 0;
  const bool are_plain = !has_binding && clock_is_tsc && site_mask != 0 && !matrix_choice.inside && !counts_events();
  __atomic_store_n(&calls_are_plain, are_plain, __ATOMIC_RELAXED);
  must_locate_calls = has_binding || has_paths() || counts_events();
}
JobGroups job_groups;

namespace {

void add_predefined(MPI_Comm comm, char letter, Identity identity, int leader) {
  CommRecord record;
  CommView& view = record.view;
  api.Comm_rank(comm, &view.rank);
  api.Comm_size(comm, &view.size);
  view.blocks = view.size;
  record.kind = CommKind::intra;
  record.letter = letter;
  record.identity = identity;
  record.kin = mixed(static_cast<Identity>(letter));
  record.leader = leader;
  const CommView& known = registry->add(std::move(record), false);
  comms.put(bits(comm), const_cast<CommView*>(&known));
  registry->handle(known.index, bits(comm));
}

// Measures what a wrapper adds to a call, without the call.  Returns the time per call in the fastest of several
// batches.
Ticks estimated_call() noexcept {
  constexpr int batches = 8, calls = 256;
  Thread thread{};
  Table& table = thread.table;
  Ticks best = ~Ticks{0};
  Cell cell{};
  cell.key = make_key(1, 1, 1, 0);
  // An index with one cell and room for it: the path of a call that was counted before.
  Cell* const index[1] = {&cell};
  table.index = index;
  table.used = 1;
  for (int b = 0; b < batches; ++b) {
    const Ticks begin = now();
    for (int i = 0; i < calls; ++i) {
      const Ticks start = now();
      const Ticks end = now();
      record(thread, cell.key, cell.site, end - start, 8, 8);
      static_cast<void>(comms.find(bits(api.comm_world)));
    }
    best = std::min(best, now() - begin);
  }
  return best / calls;
}

// The same for what the two readings of events add (COMMLENS_COUNTERS).
Ticks estimated_events() noexcept {
  Ticks best = ~Ticks{0};
  for (int i = 0; i < 32; ++i) {
    const Ticks begin = now();
    note_events(this_thread(), make_key(0, 0, 0, uncounted_region));
    best = std::min(best, now() - begin);
  }
  return 2 * best;
}

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the newest first.  Ours is the oldest, so its callback
// runs after those of the application, which may communicate.
bool has_finalize_callback = false;

extern "C" int copies_nothing(MPI_Comm, int, void*, void*, void*, int* flag) noexcept {
  *flag = 0;
  return MPI_SUCCESS;
}

extern "C" int self_is_deleted(MPI_Comm, int, void*, void*) noexcept {
  handwritten::finish();
  return MPI_SUCCESS;
}

void register_finalize_callback() noexcept {
  int key = 0;
  if (api.Comm_create_keyval(copies_nothing, self_is_deleted, &key, nullptr) != MPI_SUCCESS) return;
  has_finalize_callback = api.Comm_set_attr(api.comm_self, key, nullptr) == MPI_SUCCESS;
  api.Comm_free_keyval(&key);
}

void say_warnings() {
  for (const std::string& warning : options().warnings()) say("%s", warning.c_str());
}

// Begins the measurement, at MPI_Init or the first session, whichever is earlier.
void begin(Ticks before, Ticks after) {
  job.process = getpid();
  job.init = after - before;
  if (sched_getaffinity(0, sizeof job.cpus, &job.cpus) != 0) CPU_ZERO(&job.cpus);
  if (getcwd(job.directory, sizeof job.directory) == nullptr) job.directory[0] = '\0';
  if (job.rank == 0) say_warnings();
  job.own_call = estimated_call() + (counts_events() ? estimated_events() : 0);
  job.ready = true;
  job.began = std::time(nullptr);
  job.constants = {MPI_ANY_SOURCE, MPI_PROC_NULL, MPI_ANY_TAG};
  begin_pvars();
  job.started = now();
  job.counted_start = counted_time(job.started);
  job.use_at_start = counted_use();
  begin_slices(job.started);
  keep_watching_for_hang_signal();
  job.own_init = job.started - after;
  note_job();
  job.own_init = now() - after;
}

// Runs after all other exit handlers, because a destructor of the application may still call MPI_Finalize.  Does
// nothing in a forked child.
void at_end(void*) {
  if (registry == nullptr) say_when_bypassed();
  stop_annotating();
  if (getpid() != job.process) return;
  if (!job.ready) {
    if (job.rank < 0) remove_arena();  // did not return from MPI_Init
    return;
  }
  if (job.world) {
    const char* const kept = make_last_copy(static_cast<unsigned>(arena::State::exited));
    if (*kept == '\0') {
      say("rank %d ended without MPI_Finalize: no profile is written", job.rank);
    } else {
      say("rank %d ended without MPI_Finalize; its counters are in %s: run 'commlens recover'", job.rank, kept);
    }
  } else {
    collect_at_exit();
  }
}

std::mutex sessions_mutex;

// A forked child counts nothing: its calls go to the MPI library.
void child_forked() noexcept {
  if (!job.ready) return;  // forked before MPI_Init, the child may be the process that calls it
  stop_measuring();
  remove_pml_hook_in_child();
}

}  // namespace

bool prepare() noexcept try {
  if (!prepare_counting() || !load_api()) return false;
  ask_for_world_ranks(world_rank);
  ask_for_members(members);
  ask_for_sampled([](std::uint32_t comm) noexcept { return registry->sampled(comm); });
  if (options().on(Option::datatypes)) count_datatypes();
  site_mask = options().on(Option::callsites) ? ~Site{0} : 0;
  update_calls();
  registry = new Registry();
  remember_launcher();
  watch_for_hang_signal(options().text(Option::hang_signal), *registry);
  pthread_atfork(nullptr, nullptr, child_forked);  // after the handlers of open_arena(), which release the locks
  return true;
} catch (const std::bad_alloc&) {
  say("cannot start: out of memory; running unprofiled");
  return false;
}

namespace handwritten {

void initialised(Ticks before, Ticks after) noexcept try {
  if (job.world) return;
  job.world = true;
  complete_api();
  api.Query_thread(&job.thread_level);
  // Sessions have thread levels of their own.
  const bool is_serial = job.thread_level >= 0 && job.thread_level < MPI_THREAD_MULTIPLE && job.sessions == 0;
  if (is_serial) store_requests_plainly();
  api.Comm_rank(api.comm_world, &job.rank);
  api.Comm_size(api.comm_world, &job.size);
  api.Comm_group(api.comm_world, &job_groups.world);
  add_predefined(api.comm_world, letter_world, mixed(letter_world), 0);
  add_predefined(api.comm_self, letter_self, combine(letter_self, static_cast<Identity>(job.rank)), job.rank);
  if (!has_finalize_callback) register_finalize_callback();
  begin_tuning();
  install_pml_hook();
  if (!job.ready) begin(before, after);
  begin_pvars();  // if sessions began the measurement
} catch (const std::bad_alloc&) {
  say("rank %d: cannot start: out of memory", job.rank);
}

void finalising() noexcept {
  if (!job.ready || !job.world) return;
  read_pvars_at_end();
  job.ended = now();
  job.use_at_end = counted_use();
  if (!has_finalize_callback) finish();
}

void finish() noexcept {
  if (!job.ready || !job.world) return;
  const Ticks begin = now();
  end_pvars();
  end_tuning();
  remove_pml_hook();
  job.ready = !collect(begin);
  job.world = false;
  api.Group_free(&job_groups.world);
  job_groups.world = job_groups.session;
  if (!job.ready) {
    stop_measuring();
  } else {
    reopen_regions();  // calls in sessions are still counted
    if (job_groups.world != MPI_Group{}) install_pml_hook();
  }
}

// The process set mpi://WORLD gives rank and size.  Makes only local calls.
void session_began(std::uint64_t session, Ticks before, Ticks after) noexcept try {
  const std::lock_guard<std::mutex> lock(sessions_mutex);
  RequestTable::set_for_one_thread(false);
  if (job.sessions++ != 0) return;
  using FromSet = int (*)(MPI_Session, const char*, MPI_Group*);
  const auto from_set = reinterpret_cast<FromSet>(next_definition("PMPI_Group_from_session_pset").address);
  if (from_set == nullptr || from_set(of_bits<MPI_Session>(session), "mpi://WORLD", &job_groups.session) != MPI_SUCCESS)
    return;
  if (job.world) return;
  complete_api();
  job_groups.world = job_groups.session;
  if (!job.ready) {
    api.Group_rank(job_groups.world, &job.rank);
    api.Group_size(job_groups.world, &job.size);
  }
  install_pml_hook();
  if (!job.ready) begin(before, after);
  begin_pvars();  // if earlier sessions have ended
} catch (const std::bad_alloc&) {
  say("rank %d: cannot start: out of memory", job.rank);
}

void session_ending() noexcept {
  const std::lock_guard<std::mutex> lock(sessions_mutex);
  if (--job.sessions != 0) return;
  if (!job.world) read_pvars_at_end();
  job.ended = now();
  job.use_at_end = counted_use();
  if (!job.world) {
    end_pvars();
    remove_pml_hook();
  }
  if (job_groups.session != MPI_Group{}) api.Group_free(&job_groups.session);
  job_groups.session = MPI_Group{};
  if (!job.world) job_groups.world = MPI_Group{};
}

void aborting(MPI_Comm, int errorcode) noexcept {
  if (!job.ready) return;
  const char* const kept = make_last_copy(static_cast<unsigned>(arena::State::aborted));
  if (*kept == '\0') {
    say("rank %d called MPI_Abort with code %d: no profile is written", job.rank, errorcode);
  } else {
    say("rank %d called MPI_Abort with code %d; its counters are in %s: run 'commlens recover'", job.rank, errorcode,
        kept);
  }
  job.ready = false;
}

}  // namespace handwritten

// The personality routine of the wrappers.  The application's unwinder calls it for each frame of ours that it passes.
extern "C" __attribute__((visibility("hidden"), used)) _Unwind_Reason_Code commlens_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context* context) {
  if ((actions & _UA_CLEANUP_PHASE) == 0 || current_thread == nullptr) return _URC_CONTINUE_UNWIND;
  // The register with the frame pointer of that frame: rbp, x29.
#if defined(COMMLENS_AARCH64)
  constexpr int frame_pointer = 29;
#else
  constexpr int frame_pointer = 6;
#endif
  // Looks up a function of the unwinder that is running: there may be several in a process, and only this one knows its
  // context.  It cannot be found if the unwinder is linked into the program and hidden; then every wrapper ends the
  // call.  So does every wrapper on a processor where the place of its frame is unknown.
#if defined(COMMLENS_PORTABLE)
  decltype(&_Unwind_GetGR) const get_register = nullptr;
#else
  const auto get_register = reinterpret_cast<decltype(&_Unwind_GetGR)>(
      find_symbol_beside(__builtin_extract_return_addr(__builtin_return_address(0)), "_Unwind_GetGR"));
#endif
  if (get_register == nullptr ||
      get_register(context, frame_pointer) == reinterpret_cast<_Unwind_Word>(current_thread->outermost)) {
    current_thread->outermost = nullptr;
  }
  return _URC_CONTINUE_UNWIND;
}

// A function that is registered while destructors run comes after all of them.  It is registered for no library,
// because it would otherwise run with our own destructors.  Our library is never unloaded.
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept;
__attribute__((destructor)) static void at_exit() { __cxa_atexit(at_end, nullptr, nullptr); }

}  // namespace commlens
