// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"
#include "core/state/datatypes.h"
#include "core/state/events.h"
#include "core/state/messages.h"
#include "core/state/notices.h"
#include "core/state/partners.h"
#include "core/state/peers.h"
#include "core/state/processor_use.h"
#include "core/state/regions.h"
#include "core/state/registry.h"
#include "core/state/samples.h"
#include "core/state/site_facts.h"
#include "core/state/slices.h"

namespace commlens {

// The facts of one process that no cell holds.  Times are in nanoseconds.
struct RankFacts {
  int rank = 0;
  Identity world = 0;
  std::string node;
  Identity machine = 0;  // the same for all processes of one boot of one machine; 0: unknown
  int pid = 0;
  std::string cpus;
  Ns init_ns = 0;
  Ns app_ns = 0;
  std::optional<ProcessorUse> use;  // within app_ns; empty: unknown
  int threads = 0;
  Ns own_init_ns = 0;               // time that commlens added to MPI_Init
  Ns own_wait_ns = 0;               // time in MPI_Finalize until the last rank arrived
  Ns own_collect_ns = 0;            // time that commlens added to MPI_Finalize after that, up to sending
  Ns own_call_ns = 0;               // estimated time that commlens adds to one call
  std::string state = "finalized";  // how the process ended
  std::string coverage;             // its MPI imports, as encoded by written() in coverage.h
  std::string settings;             // the same for process/settings.h
};

// Where a thread of a process that has not finalised was when its counters were read.
struct Position {
  int thread = 0;       // from 0, in the order of the threads' first calls
  bool inside = false;  // true: the call is in progress; false: it was the thread's last call
  std::uint32_t op = 0;
  std::uint32_t comm = 0;  // index
  Site site = 0;
  Ticks since = 0;  // when the call began
  std::uint32_t region = 0;
  CallPartners partners;
};

// The counters of all calls with one key and call site.
struct CountedCell {
  Key key = 0;
  Site site = 0;
  std::uint64_t calls = 0;
  Ticks time = 0;                    // if calls were not timed, an estimate
  Ticks time_min = 0, time_max = 0;  // of the calls that were timed
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::uint64_t untimed = 0;  // calls that were not timed (hot/untimed.h)
  double variance = 0;        // of `time`, in ticks^2
};
using Cells = std::map<std::pair<Key, Site>, CountedCell>;

// The counters of one thread, or of all that are not counted apart (COMMLENS_THREADS=each).
struct CountedThread {
  std::uint64_t threads = 0;  // their number
  std::int32_t id = 0;        // of one thread, as gettid() returns it
  bool is_main = false;
  std::string name;
  Cells cells;
  CountedRegions regions;  // times only
};
inline constexpr std::uint32_t other_threads = ~std::uint32_t{0};
using CountedThreads = std::map<std::uint32_t, CountedThread>;  // by number, or other_threads

// All counters of one process, taken from this process or from the arena of one that has ended.
struct Counted {
  RankFacts facts;
  TickScale scale;
  Ticks started = 0;                     // when MPI_Init returned
  std::vector<const CommRecord*> comms;  // by index
  Cells cells;                           // of all threads
  CountedDatatypes datatypes;            // of all threads
  std::uint64_t lost = 0;                // calls whose key was lost; they are among the cells
  SliceLogContent slices;                // of all threads
  CountedRegions regions;                // of all threads
  CountedThreads threads;                // the same cells and regions by thread; empty unless it was asked for
  Peers peers;                           // of all threads
  EventSums events;                      // of all threads
  std::vector<StratumSamples> samples;
  std::vector<ChannelSamples> messages;
  std::vector<NoticeText> notices;
  std::vector<Position> positions;
  std::function<SiteFacts(Site)> place;
  std::function<Site(Site)> caller = [](Site) { return Site{0}; };  // of a call path; 0: unknown
};

// Adds a cell to the sum of all cells with its key and call site, to that of its datatypes, and to that of its thread;
// null: threads are not counted apart.
void add_cell_to(Counted& counted, CountedThread* own, const Cell& cell);

// Returns the entry to which the counters of the thread `number` belong, with the thread in it; null if threads are not
// counted apart.
CountedThread* add_thread(CountedThreads& threads, std::uint32_t number, const ThreadOwner& owner);

// Returns the counters of this process until `end`, without `facts` and `started`.  pre: no other thread calls MPI any
// more.
Counted counted_here(const Registry& registry, Ticks end);

}  // namespace commlens
