// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/unit/check.h"

namespace commlens {

// What is known to the whole process stays known for ever: such a test has a process of its own.
inline void in_own_process(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(check::failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

}  // namespace commlens
