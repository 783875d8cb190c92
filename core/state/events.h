// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/wire.h"
#include "core/hot/regions.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"
#include "core/process/events.h"

// Hardware counters and software events (COMMLENS_COUNTERS), by code region, and by procedure and communicator.
//
// A thread reads its events whenever it passes from one region to another, and at the begin and end of each of its MPI
// calls.  The difference to the last reading belongs to what it did in between.  So the cells of a thread add up to all
// that it was counted.
//
// Without the option, nothing of this is executed.  With it, no call is plain (are_calls_plain()), so that each one
// passes locate(); and every call and region ends late (Thread::is_due()), so that each one passes
// end_slice_after_call() or end_slice_at_region().
namespace [[gnu::visibility("hidden")]] commlens {

// Events of one kind in one region: outside MPI, or in one procedure and communicator.
struct alignas(64) EventCell {
  Key key;    // region, procedure and communicator; see event_key()
  Site site;  // the metric that has the name of the event
  std::uint64_t count;
  std::uint64_t enabled, running;  // as in EventCount
  std::uint64_t unused[3];
};
static_assert(sizeof(EventCell) == 64);

inline Key event_key(Key call) noexcept { return make_key(comm_of_key(call), op_of_key(call), 0, region_of_key(call)); }
inline Key event_key_outside(const Thread& thread) noexcept { return make_key(0, 0, 0, thread.region()); }

// The events of one thread.
struct ThreadEvents {
  TableOf<EventCell> cells;
  EventReader reader;
  EventCount last[EventReader::most];  // at the last reading
  bool has_failed;                     // the kernel has refused to open or to read them
  Ticks slice_end;                     // when the current slice is over, in place of Thread::due()
};

extern bool events_are_counted;
inline bool counts_events() noexcept { return events_are_counted; }

// Determines the events to count (COMMLENS_COUNTERS), and names those that the kernel refuses in a notice.  Call it
// when the arena is open, before the first thread counts.
void choose_events(const std::string& list, const EventKernel& kernel = linux_events);

// Counts under `key` what has happened since the last reading.  Does nothing on a thread without memory for it.
// Preserves errno.  pre: counts_events(); the thread is the calling one.
void note_events(Thread& thread, Key key) noexcept;

// The same under the current region, unless the thread is in an MPI call, which goes on.
inline void note_events_outside(Thread& thread) noexcept {
  if (thread.outermost == nullptr) note_events(thread, event_key_outside(thread));
}

// The calling thread ends: closes its events.
void leave_events(Thread& thread) noexcept;
void leave_events_to_parent() noexcept;  // in a forked child

// Clears the counts of a thread.
void forget_events(Thread& thread) noexcept;

// Sums over the threads of a process, by key and metric.
struct EventSum {
  std::uint64_t count = 0, enabled = 0, running = 0;
};
using EventSums = std::map<std::pair<Key, std::uint64_t>, EventSum>;
void add_events(EventSums& sums, const EventCell& cell);
EventSums events_here();
void write_events(WireWriter& out, const EventSums& sums);  // as Profile::read_events() reads them

}  // namespace commlens
