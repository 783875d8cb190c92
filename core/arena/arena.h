// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/arena/format.h"
#include "core/hot/regions.h"

namespace commlens::arena {

// Returns the facts of a process in this PID namespace; start_time is 0 if it does not exist or is a zombie.
Process process_facts(std::int64_t pid);
Process this_process();

// Whether the process of an arena still runs, as far as this process can find out.  unknown: it may run where this
// process cannot look, in another PID namespace.
// `in_memory`: the file is on a file system that does not outlive a reboot, so that a different boot id means a
// container.
enum class Liveness { running, gone, unknown };
Liveness liveness_of(const Process& process, bool in_memory);
const char* name_of(Liveness liveness);

bool is_of_this_boot(const Process& process);  // true if the process ran on this machine since its last boot

// Returns how many nanoseconds the CLOCK_MONOTONIC of a process is ahead of ours: it may be in another time namespace.
std::int64_t clock_ahead(const Process& process);

// Returns the name of a process's arena, without the directory.  file_prefix() is the common beginning of the names of
// all arenas of this user.
std::string file_name(const Process& process);
std::string file_prefix();

// Returns a value that depends on the sizes of the types in an arena.  An arena with another value cannot be read.
std::uint64_t layout() noexcept;

// Returns the directories for arenas, in order of preference: `wanted` as an absolute path unless it is empty,
// /dev/shm, and $TMPDIR if that is an absolute path.
std::vector<std::string> places(const std::string& wanted);

// Creates the arena of this process in the first directory that has room, and returns its path.  Returns an empty
// string when none has room, with the reasons in `error`.  Call once per process.
std::string open(const std::vector<std::string>& places, std::string& error);

// Returns the zeroed, aligned memory of a new segment; private memory when there is no arena or no more room; null when
// there is no memory at all.  Takes a lock; does not use the heap.
void* allocate(Kind kind, std::size_t bytes, std::uint32_t number = 0) noexcept;

// True when the file could not grow, so that later counters are in private memory.
bool overflowed() noexcept;

// Returns the header of this process's own arena, or null.
const Header* own_header() noexcept;

// Stores this process's rank and launch in the header.
void note_rank(int rank, std::uint64_t launch) noexcept;

// Returns how many communicators the process `rank` had before the one with this identity: the count is part of the
// communicator's name.  Returns -1 when it cannot be found: the process is on another node, or has not recorded the
// communicator yet.  Reads the arena of that process.  May be called from a signal handler (no lock, no allocation), by
// one thread at a time.
std::int64_t count_at(int rank, std::uint64_t identity) noexcept;

// Stores the state of pausing in the header.
void note_pause(const Pause& pause) noexcept;

// Stores in the header when counters were last cleared, in counted time, and how often they were.
void note_forgotten(Ticks at, std::uint32_t clears) noexcept;

// Updates Header::last with the current clock readings.
void read_clocks() noexcept;

// Returns the path of the arena, or an empty string.
const std::string& path() noexcept;

// Removes the file; its memory stays mapped.
void remove() noexcept;
void unlink_file() noexcept;  // the same for signal handlers: takes no lock

// Stores the state of the process in the header (State, or its value `signal` plus a number).  May be called from a
// signal handler, like copy(): no lock, no allocation.
void note_state(std::uint32_t state) noexcept;

// Copies the arena to the file `unfinished`, replacing an old one, and renames that to `name`.  Both are relative to
// the open directory `folder`, as in openat(2).  Returns false, with errno, when it fails.  Other threads may go on
// counting: each segment is copied in the state it has at that moment.
bool copy(int folder, const char* unfinished, const char* name) noexcept;

// Call around a fork.  The child counts nothing in the arena.  If `copies`, the child gets a private copy of its
// content; otherwise the mapping stays shared, and the child must not touch it.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child(bool copies) noexcept;

}  // namespace commlens::arena
