// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace commlens {

// While it lives, a write of ours that would raise SIGNAL on this thread only fails, with an error code: SIGPIPE when
// nobody reads stderr any more, SIGXFSZ at a file size limit.  Both would end the application.
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
    const int error = errno;  // of the write, for whoever asks
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
