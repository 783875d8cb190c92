// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/arena/format.h"
#include "core/hot/regions.h"

namespace commlens::arena {

// A process as the kernel shows it to this one; start_time 0: it is not there.
Process process_facts(std::int64_t pid);
Process this_process();

// What became of the process of an arena, as far as it can be seen from here.  unknown: it may run where this process
// cannot look, in another PID namespace.  `in_memory`: the file is on a file system that does not outlive a boot, so
// that another boot id is that of a container.
enum class Liveness { running, gone, unknown };
Liveness liveness_of(const Process& process, bool in_memory);
const char* name_of(Liveness liveness);

bool is_of_this_boot(const Process& process);  // of this machine, and not restarted since

// How far the CLOCK_MONOTONIC of a process is ahead of ours: it may be in another time namespace.
std::int64_t clock_ahead(const Process& process);

// The name of the arena of a process, without the directory.  prefix: what all names of a user's arenas begin with.
std::string file_name(const Process& process);
std::string file_prefix();

// What the layout depends on, of the build: an arena with another value cannot be read.
std::uint64_t layout() noexcept;

// Where arenas go, in order: `wanted` if it is not empty, /dev/shm, $TMPDIR.
std::vector<std::string> places(const std::string& wanted);

// Makes the arena of this process in the first place that has room, and returns its path; empty when none has, with the
// reason in `error`.  Once per process.
std::string open(const std::vector<std::string>& places, std::string& error);

// Returns zeroed, aligned memory of a new segment, or private memory when there is no arena or no more room; null when
// there is no memory at all.  Takes a lock; no allocation.
void* allocate(Kind kind, std::size_t bytes, std::uint32_t number = 0) noexcept;

// Whether counters are in private memory by now, although there is an arena: its place is full.
bool overflowed() noexcept;

// The header of this process's own arena, or null.
const Header* own_header() noexcept;

// Says in the header which rank of which launch this is.
void note_rank(int rank, std::uint64_t launch) noexcept;

// How many communicators the process with `rank` had got when it got the one with `identity`: that is part of its name.
// -1 when this cannot be told: that process is on another node, or does not know the communicator yet.  Reads the arena
// of that process; for signal handlers: no lock, no allocation.  One call at a time.
std::int64_t count_at(int rank, std::uint64_t identity) noexcept;

// Says in the header how counting is paused.
void note_pause(const Pause& pause) noexcept;

// The same of when counters were last cleared, by the clock of counted time.
void note_forgotten(Ticks at) noexcept;

// Renews Header::last.
void read_clocks() noexcept;

// Its path, or empty.
const std::string& path() noexcept;

// Removes the file; the memory stays.
void remove() noexcept;
void unlink_file() noexcept;  // the same from a signal handler: without a lock

// Notes what became of the process.  For signal handlers, like the next one: no lock, no allocation.
void note_state(std::uint32_t state) noexcept;

// Copies the arena to the file `unfinished`, which is made anew, and renames it to `name`.  Both are relative to the
// open directory `folder`, as in openat(2).  False, with errno, when it cannot.  The process may go on counting: each
// segment is copied as it is when its turn comes.
bool copy(int folder, const char* unfinished, const char* name) noexcept;

// Around a fork.  The child counts nothing into the arena any more: with `copies`, what it has is its own from now on;
// without, its mapping stays as it is, and it must not touch it.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child(bool copies) noexcept;

}  // namespace commlens::arena
