// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace commlens {

// Facts of a process of this machine, from /proc.
struct ProcessFacts {
  std::string name;   // of its program, truncated to 15 characters
  pid_t parent = -1;  // -1: the process does not exist, or cannot be read
};

ProcessFacts facts_of(pid_t process);

// Returns the argument after `option` in the command line of a process; empty: there is none, or the command line
// cannot be read.
std::string argument_of(pid_t process, const std::string& option);

}  // namespace commlens
