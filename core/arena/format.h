// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/base/ticks.h"

// The layout of an arena: a file with the counters of one process, which the process has mapped.  Other processes may
// read it while the process runs, and after it was killed.
//
//   4096 bytes  Header
//   then        segments, one behind the other: SegmentHead, content, up to a multiple of 64 bytes
//
// The format is private and versioned: only the build that wrote an arena reads it.  Readers never follow an address
// stored in it.
namespace commlens::arena {

inline constexpr char magic[8] = {'C', 'L', 'A', 'R', 'E', 'N', 'A', '\n'};
inline constexpr std::uint32_t version = 13;
inline constexpr std::uint64_t alignment = 64;
inline constexpr std::uint64_t header_bytes = 4096;

// The file grows in chunks, each as large as all before it together, within these limits.
inline constexpr std::uint64_t first_chunk = 256 << 10;
inline constexpr std::uint64_t chunk_alignment = 64 << 10;  // the largest page of Linux on the processors that we know
inline constexpr std::uint64_t largest_chunk = 4 << 20;
inline constexpr int most_chunks = 4096;
inline constexpr std::uint64_t most_bytes = most_chunks * largest_chunk;

enum class Kind : std::uint32_t {
  none = 0,
  thread = 1,   // one Thread (hot/thread.h)
  cells = 2,    // an array of Cell (hot/table.h) of the thread with this number; those with key 0 are free
  journal = 3,  // entries of the journal (state/journal.h)
  slices = 5,   // a SliceBlock and its entries (state/slices.h), of the thread with this number
  comms = 4,    // an array of CommState, in the order of communicator indices
  stack = 6,    // the Regions of the thread with this number (hot/regions.h)
  regions = 7,  // arrays of RegionCell, MetricCell and LoopCell, like cells
  metrics = 8,
  loops = 9,
  peers = 10,     // an array of PeerCell (hot/peer_cell.h), like cells
  samples = 11,   // an array of SampleChunk (hot/samples.h)
  messages = 12,  // an array of MessageChunk (hot/messages.h)
  series = 13,    // a Series and its values (hot/series.h), of the thread with this number
  events = 14,    // an array of EventCell (state/events.h), like cells
};
inline constexpr Kind last_kind = Kind::events;

// Why the process ended, as far as it could record that.  A fatal signal is stored as `signal` plus its number.
enum class State : std::uint32_t {
  running = 0,  // or killed without a chance to record its end
  finalized,    // its profile is written; the file is about to be removed
  exited,       // without MPI_Finalize
  aborted,      // called MPI_Abort
  signal = 0x100,
};

// The PID and time namespaces of a process: a container may have its own.  0: unknown.
struct Namespaces {
  std::uint64_t pid, time;        // inodes of /proc/self/ns/pid and /proc/self/ns/time
  std::int64_t boottime_offset;   // ns by which its CLOCK_BOOTTIME and start times in /proc are ahead of the machine's
  std::int64_t monotonic_offset;  // the same for its CLOCK_MONOTONIC
};

// Identifies a process; the process id alone may be reused.
struct Process {
  std::int64_t pid;          // in its own PID namespace
  std::uint64_t start_time;  // clock ticks after boot, as the process reads it in /proc/self/stat; 0: unknown
  std::uint64_t boot[2];     // /proc/sys/kernel/random/boot_id; 0: unknown
  Namespaces namespaces;
};

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t layout;  // layout() of the build that wrote the segments
  Process process;
  std::uint32_t clock_is_tsc;
  std::atomic<std::uint32_t> state;
  Reading first, last;  // of the clocks; `last` at the newest journal entry, or later
  // Bytes of the file up to the end of the last complete segment: readers must not read beyond.
  std::atomic<std::uint64_t> used;
  std::atomic<std::uint32_t> is_full;  // 1: no room for more segments; later counters are lost if the process is killed
  std::atomic<std::uint64_t> launch;   // as in JobEntry (state/journal.h)
  std::atomic<std::int32_t> rank;      // in MPI_COMM_WORLD; -1 until it is known
  std::atomic<std::uint32_t> pause_changes;  // as in Pause (hot/regions.h)
  std::atomic<Ticks> held, paused_before;
  std::atomic<Ticks> forgotten;  // when counters were last cleared, in counted time
  // How often they were cleared.  The counters of a thread whose Thread::clears differs are from before the last time.
  std::atomic<std::uint32_t> clears;
};
static_assert(sizeof(Header) <= header_bytes);
static_assert(std::is_standard_layout_v<Header>);

struct alignas(alignment) SegmentHead {
  Kind kind;
  std::uint32_t number;               // meaning depends on the kind
  std::uint64_t bytes;                // of the content
  std::atomic<std::uint64_t> filled;  // journals only: bytes of the content in use
};
static_assert(sizeof(SegmentHead) == alignment);

// The facts of a communicator that change while the job runs, and those from which a signal handler builds its name.  A
// handler can neither take a lock nor read the journal, which has all other facts.
struct alignas(alignment) CommState {
  static constexpr std::uint32_t text_bytes = 140;  // enough for the longest name that an MPI library accepts: 128
  static constexpr std::uint32_t most_members = text_bytes / sizeof(std::uint32_t);

  std::atomic<std::uint64_t> handle;  // bits of the last handle that stood for it
  std::atomic<Ticks> freed;           // 0: not freed
  std::atomic<std::uint64_t> identity;
  CommState* previous;  // the communicator added before this one; an address valid in this process only
  std::uint32_t index;
  std::int32_t leader;                       // world rank of rank 0; -1: in another world
  std::uint32_t count;                       // CommRecord::count; of a set: number of members
  std::atomic<std::uint32_t> communicators;  // that share this record (CommRecord::communicators)
  char letter;
  bool is_set;
  union {
    char user_name[text_bytes];           // truncated if necessary; zero-terminated
    std::uint32_t members[most_members];  // of a set: the indices of its first members
  };
};
static_assert(sizeof(CommState) == 3 * alignment);

}  // namespace commlens::arena
