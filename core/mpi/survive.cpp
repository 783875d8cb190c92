// SPDX-License-Identifier: Apache-2.0
// What is left of a process that does not reach MPI_Finalize (docs/decisions/0009-arenas.md).
#include "core/mpi/survive.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "core/arena/arena.h"
#include "core/cold/coverage.h"
#include "core/cold/say.h"
#include "core/cold/symbols.h"
#include "core/hot/thread.h"
#include "core/mpi/bind.h"
#include "core/mpi/job.h"
#include "core/mpi/state.h"

namespace commlens {
namespace {

// Signals that end a process unless it has a handler: from outside (batch systems, users) and its own faults.
constexpr int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
constexpr std::size_t fatal_count = sizeof fatal / sizeof *fatal;

// Made before anything goes wrong: a handler can allocate nothing.
char directory_of_copies[PATH_MAX] = "";
char copy_path[PATH_MAX - 8] = "";
char flush_path[PATH_MAX] = "", last_path[PATH_MAX] = "";  // until it is finished
bool is_flushed = false;
pid_t process = 0;
struct sigaction before[fatal_count];  // of the MPI library or the Fortran runtime, or the default

bool is_fault(int signal) noexcept {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSYS;
}

// Also where a signal came while another thread copies: each has a name of its own until it is finished.
bool copy_arena(const char* unfinished) noexcept {
  if (copy_path[0] == '\0' || (mkdir(directory_of_copies, 0777) != 0 && errno != EEXIST)) return false;
  return arena::copy(unfinished, copy_path);
}

// The last copy: once, whoever comes first.
bool copy_at_end(unsigned state) noexcept {
  static std::atomic<bool> is_done{false};
  if (is_done.exchange(true)) return false;
  arena::note_state(state);
  if (!copy_arena(last_path)) return false;
  arena::unlink_file();
  return true;
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
  // A fault happens again when we return, and abort() raises its signal again: both with the registers of the first
  // time. What was sent comes only once.
  const bool was_sent = info == nullptr || info->si_code <= 0 || !is_fault(signal);
  if (was_sent) raise(signal);  // is blocked until we return
}

// Handlers of the MPI library, of what it communicates through, and of the Fortran runtime print where the program was,
// and then let the signal end it.  An application's own may go on with the program: it is left alone.
bool only_ends_the_process(const struct sigaction& action) noexcept {
  if (action.sa_handler == SIG_DFL) return true;
  if (action.sa_handler == SIG_IGN) return false;
  const std::string_view object = object_of(reinterpret_cast<const void*>(action.sa_handler));
  for (const char* known : {"/libgfortran.", "/libucs.", "/libpsm2."}) {
    if (object.find(known) != std::string_view::npos) return true;
  }
  return is_mpi_library(object);
}

void prepare_fork() noexcept { arena::before_fork(); }
void parent_forked() noexcept { arena::after_fork_in_parent(); }

// A child counts nothing; what it calls goes to the MPI library.  Only who forks inside a call of ours comes back to
// it.
void child_forked() noexcept {
  const bool counts = !job.ready;  // made before MPI_Init, it is the one that will call it
  const bool is_inside = current_thread != nullptr && current_thread->outermost != nullptr;
  arena::after_fork_in_child(counts || is_inside);
  if (!counts) stop_measuring();
}

}  // namespace

void open_arena() {
  std::string error;
  const std::string& wanted = options().text(Option::arena_dir);
  const std::string path = arena::open(arena::places(wanted), error);
  if (path.empty() && launcher_rank() <= 0) {
    say("no place for counters that survive the process: %s", error.c_str());
  } else if (!wanted.empty() && !error.empty() && launcher_rank() <= 0) {
    say("%s; counters are in %s", error.c_str(), path.c_str());
  }
  pthread_atfork(prepare_fork, parent_forked, child_forked);
}

void survive(const std::string& directory, int rank) noexcept {
  process = getpid();
  const int n = std::snprintf(directory_of_copies, sizeof directory_of_copies, "%s", directory.c_str());
  const int m = std::snprintf(copy_path, sizeof copy_path, "%s/rank%d.%d.arena", directory.c_str(), rank, process);
  const bool has_room = n < static_cast<int>(sizeof directory_of_copies) && m < static_cast<int>(sizeof copy_path);
  if (arena::path().empty() || !has_room) {
    copy_path[0] = '\0';
    return;
  }
  std::snprintf(flush_path, sizeof flush_path, "%s.flush", copy_path);
  std::snprintf(last_path, sizeof last_path, "%s.last", copy_path);
  struct sigaction ours{};
  ours.sa_sigaction = fatal_signal;
  sigemptyset(&ours.sa_mask);
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  for (std::size_t i = 0; i < fatal_count; ++i) {
    if (sigaction(fatal[i], nullptr, &before[i]) != 0 || !only_ends_the_process(before[i])) continue;
    sigaction(fatal[i], &ours, nullptr);
  }
}

bool flush_arena() noexcept {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (getpid() != process || !copy_arena(flush_path)) return false;
  is_flushed = true;
  return true;
}

const char* leave_arena(unsigned state) noexcept {
  if (getpid() != process) return "";
  if (copy_at_end(state)) return copy_path;
  return arena::path().c_str();
}

void end_arena() noexcept {
  arena::remove();
  if (!is_flushed) return;
  unlink(copy_path);
  rmdir(directory_of_copies);  // by the last rank; for all others it is not empty
}

}  // namespace commlens
