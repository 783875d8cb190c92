// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

// Locks of the data that the child of a fork goes on using, if the fork happens before MPI_Init.  before_fork() takes
// them all, so that no other thread is in the middle of a change: the child finds the locks free and the data
// consistent.
// Lock order: a thread that holds one of them may only take those declared after it.
namespace commlens::locks {

extern std::mutex peers;
extern std::mutex threads;
extern std::mutex regions;
extern std::mutex notices;
extern std::mutex modules;
extern std::mutex paths;
extern std::mutex samples;
extern std::mutex handles;

void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace commlens::locks
