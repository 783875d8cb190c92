// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/cold/identity.h"
#include "core/cold/notices.h"
#include "core/cold/peers.h"
#include "core/cold/regions.h"
#include "core/cold/registry.h"
#include "core/cold/site_facts.h"
#include "core/cold/slices.h"
#include "core/cold/ticks.h"
#include "core/hot/table.h"

namespace commlens {

// The facts of one process that no cell holds.  Times in nanoseconds.
struct RankFacts {
  int rank = 0;
  Identity world = 0;
  std::string node;
  int pid = 0;
  std::string cpus;
  Ns init_ns = 0;
  Ns app_ns = 0;
  int threads = 0;
  Ns own_init_ns = 0;               // what we added to MPI_Init
  Ns own_wait_ns = 0;               // in MPI_Finalize, until all ranks were there
  Ns own_collect_ns = 0;            // what we added to it from then on, up to sending
  Ns own_call_ns = 0;               // estimated, for one call
  std::string state = "finalized";  // how it ended
  std::string coverage;             // what it imports, as written() by coverage.h
};

// Where a thread was when somebody looked at a process that had not finalised.
struct Position {
  int thread = 0;       // from 0, in the order of their first calls
  bool inside = false;  // the call is under way; otherwise it was the thread's last one
  std::uint32_t op = 0;
  std::uint32_t comm = 0;  // index
  Site site = 0;
  Ticks since = 0;  // when the call began
  std::uint32_t region = 0;
};

using Cells = std::map<std::pair<Key, Site>, Cell>;

// All that one process counted, wherever it stands: in this process, or in the arena of one that is gone.
struct Counted {
  RankFacts facts;
  TickScale scale;
  Ticks started = 0;                     // when MPI_Init returned
  std::vector<const CommRecord*> comms;  // by index
  Cells cells;                           // of all threads
  std::uint64_t lost = 0;                // calls without their key, which are among the cells
  Sliced slices;                         // of all threads
  CountedRegions regions;                // of all threads
  Peers peers;                           // of all threads
  std::vector<NoticeText> notices;
  std::vector<Position> positions;
  std::function<SiteFacts(Site)> place;
};

// Adds what another thread counted under the same key.
void add_cell_to(Cells& cells, const Cell& cell);

// What this process counted until `end`, without facts and start.  When no other thread calls MPI any more.
Counted counted_here(const Registry& registry, Ticks end);

}  // namespace commlens
