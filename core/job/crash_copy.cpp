// SPDX-License-Identifier: Apache-2.0
// Keeps the counters of a process that does not reach MPI_Finalize (docs/decisions/0009-arenas.md).
#include "core/job/crash_copy.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "core/arena/arena.h"
#include "core/base/locks.h"
#include "core/base/private_folder.h"
#include "core/base/say.h"
#include "core/base/signals.h"
#include "core/hot/thread.h"
#include "core/job/job.h"
#include "core/process/coverage.h"
#include "core/process/symbols.h"
#include "core/state/events.h"
#include "core/state/readings.h"
#include "core/state/thread_owners.h"
#include "core/state/threads.h"

namespace commlens {
namespace {

constexpr const auto& fatal = fatal_signals;
constexpr std::size_t fatal_count = sizeof fatal / sizeof *fatal;

// Prepared in advance, because a signal handler must not allocate memory.
char directory_of_copies[PATH_MAX] = "";
// Used if another user has created the first directory.  Its name is random, so that nobody can guess it.
char second_directory[PATH_MAX] = "";
// The folders around it that one rank makes for all, unless their names differ between ranks (a node or a process in
// them).  Then each rank makes its own.
char root_of_folders[PATH_MAX] = "";
std::size_t root_length = 0;  // 0: none are made
mode_t folder_mode = 0700;
char folder_elsewhere[PATH_MAX] = "";  // used if that fails
constexpr std::size_t name_room = 64;
char copy_name[name_room] = "";                                      // empty: there is nothing to copy
char flush_name[name_room + 8] = "", last_name[name_room + 8] = "";  // names of incomplete copies
char copy_path[PATH_MAX + name_room] = "";                           // of the last copy, for messages
bool is_flushed = false;
std::atomic<bool> is_ending{false};  // the last copy is being made, or exists
std::atomic<bool> is_stored{false};  // the profile contains the counters of this process: no copy is needed
pid_t process = 0;
struct sigaction before[fatal_count];  // of the MPI library or the Fortran runtime, or the default

bool is_fault(int signal) noexcept {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSYS;
}

// Opens the folder for copies and creates it if needed.  Returns an invalid folder, with errno, if it cannot.
PrivateFolder folder_of_copies() noexcept {
  PrivateFolder folder = PrivateFolder::make(directory_of_copies);
  if (!folder && errno == ENOENT && root_length != 0) {
    if (!make_parents(directory_of_copies, root_length, root_of_folders, folder_mode)) {
      std::snprintf(directory_of_copies, sizeof directory_of_copies, "%s", folder_elsewhere);
      root_length = 0;
    }
    folder = PrivateFolder::make(directory_of_copies);
  }
  if (!folder && (errno == EPERM || errno == ENOTDIR) && second_directory[0] != '\0') {
    std::snprintf(directory_of_copies, sizeof directory_of_copies, "%s", second_directory);
    second_directory[0] = '\0';
    folder = PrivateFolder::make(directory_of_copies);
  }
  return folder;
}

// Copies the arena.  Safe if a signal arrives while another thread copies: each copy has a name of its own until it is
// complete.  On failure returns false, with errno, and removes a directory that is empty.
bool copy_arena(const char* unfinished, const char* name) noexcept {
  if (copy_name[0] == '\0') return false;
  note_names();
  const bool is_copied = succeeds_though_folder_vanishes([&] {
    const PrivateFolder folder = folder_of_copies();
    if (!folder) return false;
    if (arena::copy(folder.descriptor(), unfinished, name)) return true;
    const int error = errno;
    rmdir(directory_of_copies);
    errno = error;
    return false;
  });
  if (is_copied) std::snprintf(copy_path, sizeof copy_path, "%s/%s", directory_of_copies, copy_name);
  return is_copied;
}

// gettid(), which glibc has from 2.30 on.
pid_t this_task() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Makes the last copy; only the first caller does.  Other callers wait, because they would otherwise end the process
// during the copy.  They wait at most 10 s, and not at all if they run inside the copying itself.  May be called from a
// signal handler.
bool copy_at_end(unsigned state) noexcept {
  enum Progress { not_begun, busy, copied, failed };
  static std::atomic<int> progress{not_begun};
  static std::atomic<pid_t> copier{0};
  int now = not_begun;
  if (is_stored) return false;
  if (progress.compare_exchange_strong(now, busy)) {
    copier = this_task();
    is_ending = true;
    arena::note_state(state);
    const bool is_copied = copy_arena(last_name, copy_name);
    if (is_copied) arena::unlink_file();
    progress = is_copied ? copied : failed;
    return is_copied;
  }
  constexpr int patience = 10'000;  // milliseconds
  for (int i = 0; i < patience && progress == busy && copier != this_task(); ++i) {
    constexpr timespec millisecond{0, 1'000'000};
    nanosleep(&millisecond, nullptr);
  }
  return progress == copied;
}

void fatal_signal(int signal, siginfo_t* info, void*) noexcept {
  const int saved = errno;
  if (getpid() == process) copy_at_end(static_cast<unsigned>(arena::State::signal) + static_cast<unsigned>(signal));
  const struct sigaction* previous = nullptr;
  for (std::size_t i = 0; i < fatal_count; ++i) {
    if (fatal[i] == signal) previous = &before[i];
  }
  errno = saved;
  if (previous == nullptr) return;
  sigaction(signal, previous, nullptr);
  // A fault occurs again when this handler returns, and abort() raises its signal again, both with the registers of the
  // first time.  A signal that was sent does not occur again.
  const bool was_sent = info == nullptr || info->si_code <= 0 || !is_fault(signal);
  if (was_sent) raise(signal);  // blocked until this handler returns
}

// Returns whether a handler only ends the process.  The handlers of the MPI library, of its communication libraries and
// of the Fortran runtime print a stack trace and let the signal end the process.  An application's own handler may
// continue the program, so it is not replaced.
bool only_ends_the_process(const struct sigaction& action) noexcept {
  if (action.sa_handler == SIG_DFL) return true;
  if (action.sa_handler == SIG_IGN) return false;
  const std::string_view object = object_of(reinterpret_cast<const void*>(action.sa_handler));
  for (const char* known : {"/libgfortran.", "/libucs.", "/libpsm2."}) {
    if (object.find(known) != std::string_view::npos) return true;
  }
  return is_mpi_library(object);
}

void prepare_fork() noexcept {
  locks::before_fork();
  arena::before_fork();
}
void parent_forked() noexcept {
  arena::after_fork_in_parent();
  locks::after_fork_in_parent();
}

// A forked child counts nothing.  Only a child forked inside one of our calls returns into it.
void child_forked() noexcept {
  leave_events_to_parent();
  const bool counts = !job.ready;  // forked before MPI_Init, the child may be the process that calls it
  const bool is_inside = current_thread != nullptr && current_thread->outermost != nullptr;
  arena::after_fork_in_child(counts || is_inside);
  if (!counts && !is_inside) leave_to_parent();
  locks::after_fork_in_child();
}

}  // namespace

void open_arena(const std::string& wanted) {
  std::string error;
  const std::string path = arena::open(arena::places(wanted), error);
  if (path.empty() && launcher_rank() <= 0) {
    say("no file for the counters, which are lost if the process dies: %s", error.c_str());
  } else if (!wanted.empty() && !error.empty() && launcher_rank() <= 0) {
    say("%s; counters are in %s", error.c_str(), path.c_str());
  }
  pthread_atfork(prepare_fork, parent_forked, child_forked);
}

void enable_crash_copies(const PlaceOfCopies& place, int rank) noexcept {
  process = getpid();
  const std::string& directory = place.folder;
  const int n = std::snprintf(directory_of_copies, sizeof directory_of_copies, "%s", directory.c_str());
  if (arena::path().empty() || n >= static_cast<int>(sizeof directory_of_copies)) {
    copy_name[0] = '\0';
    return;
  }
  // The folder is absolute where the working directory is known, and shorter than PATH_MAX.
  const bool has_folders = place.root != std::string::npos && place.root != 0 && place.root <= directory.size() &&
                           place.elsewhere.size() < sizeof folder_elsewhere;
  root_length = has_folders ? place.root : 0;
  folder_mode = place.mode;
  std::snprintf(root_of_folders, sizeof root_of_folders, "%.*s", static_cast<int>(root_length), directory.c_str());
  std::snprintf(folder_elsewhere, sizeof folder_elsewhere, "%s", place.elsewhere.c_str());
  std::uint64_t random = 0;
  const bool is_random = getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random;
  const int m = std::snprintf(second_directory, sizeof second_directory, "%s-%016llx", directory.c_str(),
                              static_cast<unsigned long long>(random));
  if (!is_random || m >= static_cast<int>(sizeof second_directory)) second_directory[0] = '\0';
  std::snprintf(copy_name, sizeof copy_name, "rank%d.%d.arena", rank, process);
  std::snprintf(flush_name, sizeof flush_name, "%s.flush", copy_name);
  std::snprintf(last_name, sizeof last_name, "%s.last", copy_name);
  struct sigaction ours{};
  ours.sa_sigaction = fatal_signal;
  // Blocks the other fatal signals that are no faults: if a terminal and a launcher send one each, the second would end
  // the copying.
  sigemptyset(&ours.sa_mask);
  for (const int signal : fatal) {
    if (!is_fault(signal)) sigaddset(&ours.sa_mask, signal);
  }
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  for (std::size_t i = 0; i < fatal_count; ++i) {
    if (sigaction(fatal[i], nullptr, &before[i]) != 0 || !only_ends_the_process(before[i])) continue;
    sigaction(fatal[i], &ours, nullptr);
  }
}

bool flush_arena() noexcept {
  if (getpid() != process) return false;  // a forked child: the lock may be held by a thread that it does not have
  take_reading();
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!copy_arena(flush_name, flush_name)) return false;
  const PrivateFolder folder = PrivateFolder::open(directory_of_copies);
  if (!folder) return false;
  // On a slow file system, another thread may have made the last copy meanwhile, which is newer.
  const bool is_newest = !is_ending;
  if (is_newest && renameat(folder.descriptor(), flush_name, folder.descriptor(), copy_name) == 0) {
    is_flushed = true;
    return true;
  }
  const int error = errno;
  unlinkat(folder.descriptor(), flush_name, 0);
  errno = error;
  return !is_newest;
}

// The application chose the folder, so others may write to it; only the files must be ours.
bool flush_arena_to(const char* folder) noexcept {
  if (getpid() != process || copy_name[0] == '\0') return false;
  take_reading();
  char path[PATH_MAX];
  const bool is_relative = folder[0] != '/';
  const int n =
      std::snprintf(path, sizeof path, "%s%s%s", is_relative ? job.directory : "", is_relative ? "/" : "", folder);
  if (n >= PATH_MAX || (mkdir(path, 0700) != 0 && errno != EEXIST)) return false;
  const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const bool is_copied = arena::copy(descriptor, flush_name, copy_name);
  const int error = errno;
  close(descriptor);
  errno = error;
  return is_copied;
}

const char* make_last_copy(unsigned state) noexcept {
  if (getpid() != process) return "";
  if (copy_at_end(state)) return copy_path;
  return arena::path().c_str();
}

void remove_arena() noexcept {
  is_stored = true;
  arena::remove();
  if (!is_flushed) return;
  const PrivateFolder folder = PrivateFolder::open(directory_of_copies);
  if (folder) unlinkat(folder.descriptor(), copy_name, 0);
  rmdir(directory_of_copies);  // succeeds on the last rank; for all others the directory is not empty
}

}  // namespace commlens
