// SPDX-License-Identifier: Apache-2.0
// Handles the signal by which the user asks a job that hangs what its threads are doing.
#include "core/job/hang_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "core/base/say.h"
#include "core/base/signals.h"
#include "core/job/hang_report.h"
#include "core/job/job.h"

namespace commlens {
namespace {

int wanted = 0;  // 0: none
const Registry* registry = nullptr;
pid_t process = 0;
int launched_as = -1;                          // the rank from the launcher, until MPI is initialised
struct sigaction before;                       // the former action
std::atomic_flag is_spent = ATOMIC_FLAG_INIT;  // `before` had SA_RESETHAND and has run

// Several threads may get the signal; the report of one of them covers all.
void print_hang_report_once() noexcept {
  static std::atomic_flag is_busy = ATOMIC_FLAG_INIT;
  if (is_busy.test_and_set(std::memory_order_acquire)) return;
  // Disables cancellation here: a cancelled thread would leave its files and locks in an undefined state.
  int could_be_cancelled = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &could_be_cancelled);
  const bool began = job.ready || job.ended != 0;
  const int rank = job.rank >= 0 ? job.rank : launched_as;
  print_hang_report(*registry, {rank, began ? "MPI_Finalize" : "MPI_Init", job.constants});
  pthread_setcancelstate(could_be_cancelled, nullptr);
  is_busy.clear(std::memory_order_release);
}

void call_the_former(int signal, siginfo_t* info, void* context) noexcept {
  if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) return;
  if ((before.sa_flags & SA_RESETHAND) != 0 && is_spent.test_and_set()) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

// Detects recursion: the former handler may call the one before it, which may be this one.  It may also leave by
// longjmp, so a flag that it is running is not enough.
struct Serving {
  const void* context;
  const char* frame;
};

void asked(int signal, siginfo_t* info, void* context) noexcept {
  static __thread Serving serving{nullptr, nullptr};
  const auto* const frame = static_cast<const char*>(__builtin_frame_address(0));
  if (context == serving.context && frame < serving.frame) return;
  const int saved = errno;
  if (getpid() == process) print_hang_report_once();
  errno = saved;
  serving = {context, frame};
  call_the_former(signal, info, context);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == asked;
}

// Installs our handler before the present one.  The present one keeps its mask, its stack, and the restart of the
// system calls that it interrupts.
bool put_in_front() noexcept {
  struct sigaction there{};
  if (sigaction(wanted, nullptr, &there) != 0) return false;
  if (is_ours(there)) return true;
  const bool has_handler = there.sa_handler != SIG_DFL && there.sa_handler != SIG_IGN;
  struct sigaction ours{};
  ours.sa_sigaction = asked;
  sigemptyset(&ours.sa_mask);
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  if (has_handler) {
    ours.sa_mask = there.sa_mask;
    ours.sa_flags = SA_SIGINFO | (there.sa_flags & (SA_ONSTACK | SA_RESTART | SA_NODEFER));
  }
  before = there;
  return sigaction(wanted, &ours, nullptr) == 0;
}

}  // namespace

void watch_for_hang_signal(const std::string& text, const Registry& of) {
  wanted = signal_named(text);
  if (wanted == 0) return;
  registry = &of;
  process = getpid();
  launched_as = launcher_rank();
  const bool is_fatal =
      std::find(std::begin(fatal_signals), std::end(fatal_signals), wanted) != std::end(fatal_signals);
  if (wanted > 0 && !is_fatal && put_in_front()) return;
  wanted = 0;
  if (launched_as > 0) return;
  say("COMMLENS_HANG_SIGNAL: '%s' is not a signal that a program can handle; it is ignored (use a signal such as USR2)",
      text.c_str());
}

void keep_watching_for_hang_signal() noexcept {
  process = getpid();  // a process may make the first MPI call, and its forked child MPI_Init
  if (wanted != 0) put_in_front();
}

}  // namespace commlens
