// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/cold/ticks.h"

// The layout of an arena: a file with the counters of one process, mapped into it, that others may read while it runs
// and after it was killed.
//
//   page 0      Header
//   then        segments, one behind the other: SegmentHead, content, up to a multiple of 64 bytes
//
// Private and versioned: only the build that wrote an arena reads it.  Nothing follows an address that stands in it.
namespace commlens::arena {

inline constexpr char magic[8] = {'C', 'L', 'A', 'R', 'E', 'N', 'A', '\n'};
inline constexpr std::uint32_t version = 5;
inline constexpr std::uint64_t alignment = 64;
inline constexpr std::uint64_t header_bytes = 4096;

// The file grows by chunks, each as large as all before it, within these limits.
inline constexpr std::uint64_t first_chunk = 256 << 10;
inline constexpr std::uint64_t largest_chunk = 4 << 20;
inline constexpr int most_chunks = 4096;
inline constexpr std::uint64_t most_bytes = most_chunks * largest_chunk;

enum class Kind : std::uint32_t {
  none = 0,
  thread = 1,   // one Thread (hot/thread.h)
  cells = 2,    // an array of Cell (hot/table.h) of the thread with this number; those with key 0 are free
  journal = 3,  // entries of the journal (journal.h)
  slices = 5,   // a SliceBlock and its entries (cold/slices.h), of the thread with this number
  comms = 4,    // an array of CommState, by the index of the communicator
  stack = 6,    // the Regions of the thread with this number (hot/regions.h)
  regions = 7,  // arrays of RegionCell, QuantityCell and LoopCell, like cells
  quantities = 8,
  loops = 9,
  peers = 10,  // an array of PeerCell (hot/peer_cell.h), like cells
};

// What became of the process, as far as it could still say; a signal is its number plus `signal`.
enum class State : std::uint32_t {
  running = 0,  // or gone without a word
  finalized,    // its profile is written: the file is about to go
  exited,       // without MPI_Finalize
  aborted,      // called MPI_Abort
  signal = 0x100,
};

// The namespaces in which a process sees others, and clocks: a container may have its own.  0: not known.
struct Namespaces {
  std::uint64_t pid, time;        // inodes of /proc/self/ns/pid and /proc/self/ns/time
  std::int64_t boottime_offset;   // ns by which its CLOCK_BOOTTIME is ahead of that of the machine, and so are
  std::int64_t monotonic_offset;  // start times in /proc; the same of CLOCK_MONOTONIC
};

// Which process this is: a process id alone comes again.
struct Process {
  std::int64_t pid;          // in its own namespace
  std::uint64_t start_time;  // clock ticks after boot, as it reads them in /proc/self/stat; 0: not known
  std::uint64_t boot[2];     // /proc/sys/kernel/random/boot_id; 0: not known
  Namespaces namespaces;
};

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t layout;  // of what stands in segments
  Process process;
  std::uint32_t clock_is_tsc;
  std::atomic<std::uint32_t> state;
  Reading first, last;  // of the clocks; `last` is renewed now and then
  // Bytes of the file that hold segments, whole ones only: a segment is there when this says so.
  std::atomic<std::uint64_t> used;
  std::atomic<std::uint32_t> is_full;  // 1: there was no room for more segments, and what is counted there goes along
  std::atomic<std::uint64_t> launch;   // as in the journal
  std::atomic<std::int32_t> rank;      // the same; -1 until it is known
  std::atomic<std::uint32_t> pause_changes;  // as in Pause (hot/regions.h)
  std::atomic<Ticks> held, paused_before;
  std::atomic<Ticks> forgotten;  // when counters were last cleared, by the clock of counted time
};
static_assert(sizeof(Header) <= header_bytes);
static_assert(std::is_standard_layout_v<Header>);

struct alignas(alignment) SegmentHead {
  Kind kind;
  std::uint32_t number;               // what its kind says
  std::uint64_t bytes;                // of the content
  std::atomic<std::uint64_t> filled;  // bytes of the content in use; of a journal
};
static_assert(sizeof(SegmentHead) == alignment);

// What changes of a communicator while the job runs, and what a signal handler needs for its name: it can take no lock,
// and read no journal.  The journal entry has the rest.
struct alignas(alignment) CommState {
  static constexpr std::uint32_t text_bytes = 140;  // of the longest name that an MPI library takes: 128
  static constexpr std::uint32_t most_members = text_bytes / sizeof(std::uint32_t);

  std::atomic<std::uint64_t> handle;  // the last that meant it, as bits
  std::atomic<Ticks> freed;           // 0: not freed
  std::atomic<std::uint64_t> identity;
  CommState* previous;  // the one that came before: for this process only
  std::uint32_t index;
  std::int32_t leader;  // world rank; -1: of another world
  std::uint32_t count;  // CommRecord::count; of a set: how many members it has
  std::atomic<std::uint32_t> communicators;
  char letter;
  bool is_set;
  union {
    char user_name[text_bytes];           // cut off there; ends with a zero
    std::uint32_t members[most_members];  // of a set: the first ones, indices
  };
};
static_assert(sizeof(CommState) == 3 * alignment);

}  // namespace commlens::arena
