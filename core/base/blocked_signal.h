// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace commlens {

// Blocks `signal` on this thread during its lifetime, so that a write of ours that would raise it only fails with an
// error code.  For SIGPIPE (stderr has no reader any more) and SIGXFSZ (file size limit): both would end the
// application.
// The destructor discards the signal if our write raised it; it keeps one that was already pending.
class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) {
    sigemptyset(&set_);
    sigaddset(&set_, signal);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, signal) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedSignal() {
    constexpr timespec at_once{0, 0};
    const int error = errno;  // of the write; the caller may read it
    if (!was_pending_) sigtimedwait(&set_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  sigset_t set_, before_;
  bool was_pending_;
};

}  // namespace commlens
