// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace commlens {

// A process of this machine, as the kernel tells.
struct ProcessFacts {
  std::string name;   // of its program, 15 characters at most
  pid_t parent = -1;  // -1: the process is not there, or cannot be read
};

ProcessFacts facts_of(pid_t process);

// What stands behind `option` in the command line of a process; empty when nothing does, or it cannot be read.
std::string argument_of(pid_t process, const std::string& option);

}  // namespace commlens
