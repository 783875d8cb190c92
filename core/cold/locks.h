// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

// Locks of what the child of a fork goes on with when it was made before MPI_Init, and other threads were in the middle
// of it: the child finds them free, and what they guard whole.  Who has one takes only those that are further down.
namespace commlens::locks {

extern std::mutex peers;
extern std::mutex threads;
extern std::mutex regions;
extern std::mutex notices;
extern std::mutex modules;
extern std::mutex handles;

void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace commlens::locks
