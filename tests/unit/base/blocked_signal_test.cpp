// SPDX-License-Identifier: Apache-2.0
#include "core/base/blocked_signal.h"

#include <atomic>

#include "tests/unit/check.h"

namespace commlens {
namespace {

std::atomic<int> delivered{0};
void note(int) { ++delivered; }

bool blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

}  // namespace

TEST(a_signal_raised_meanwhile_never_arrives) {
  const auto before = signal(SIGPIPE, note);
  delivered = 0;
  {
    const BlockedSignal pipe(SIGPIPE);
    raise(SIGPIPE);
  }
  CHECK_EQ(delivered, 0);
  CHECK(!blocked(SIGPIPE));
  raise(SIGPIPE);
  CHECK_EQ(delivered, 1);
  signal(SIGPIPE, before);
}

TEST(a_signal_the_application_keeps_pending_stays_pending) {
  const auto before = signal(SIGPIPE, note);
  delivered = 0;
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, &old);
  raise(SIGPIPE);
  {
    const BlockedSignal pipe(SIGPIPE);
  }
  CHECK(blocked(SIGPIPE));
  CHECK_EQ(delivered, 0);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  CHECK_EQ(delivered, 1);
  signal(SIGPIPE, before);
}

}  // namespace commlens
