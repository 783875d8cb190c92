// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/clock.h"
#include "core/hot/key.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Counters of one key at one call site, on one thread: one cache line.
struct alignas(64) Cell {
  Key key;  // 0: free
  Site site;
  std::uint64_t calls;
  Ticks time;
  Ticks time_min;  // valid when calls > 0
  Ticks time_max;
  std::uint64_t bytes_sent;
  std::uint64_t bytes_received;
};
static_assert(sizeof(Cell) == 64);

// A block of cells that were allocated together; segments form a list, newest first.
template <class C>
struct SegmentOf {
  C* begin;
  C* end;
  SegmentOf* before;
};

// The cells of one thread: an open-addressing index of pointers into segments.  Cells never move, so that a request may
// keep a pointer to the cell of the call that made it.  C is Cell, or another type with a key of two words
// (hot/regions.h, hot/peer_cell.h).
//
// A full index first drops the cells of communicators that were freed (state/freed_comms.h).  A program that creates
// and frees communicators therefore has short searches even after a day.  If the key of a dropped cell occurs again, it
// gets a second cell; collecting the profile adds up equal keys.
//
// Invariant of an index that could grow: 2 * used <= mask + 1, so that a probe ends; mask + 1 is a power of two.
// A table that cannot grow counts in `overflow`: no call is lost, and the report mentions them.
template <class C>
struct TableOf {
  // Index of an empty table: a probe finds nothing, and lookups need no test for a missing index.
  static constexpr C* nothing[1] = {nullptr};

  C* const* index = nothing;  // mask + 1 entries
  std::uint64_t mask = 0;
  std::uint64_t used = 0;          // entries of the index that are in use
  std::uint64_t left_out = 0;      // cells that were dropped from the index
  C* free = nullptr;               // next free cell of the newest segment
  C* segment_end = nullptr;        // end of the newest segment
  SegmentOf<C>* newest = nullptr;  // list of all segments, newest first
  SegmentOf<C>* spare = nullptr;   // memory for further SegmentOf records
  SegmentOf<C>* spare_end = nullptr;
  C overflow{};  // of a Table, the key: no communicator, unknown procedure
};
using Table = TableOf<Cell>;

inline std::uint64_t hash_of(Key key, Site site) noexcept {
  return folded(key ^ 0x9e3779b97f4a7c15u, site ^ 0xd6e8feb86659fd93u);
}

// Adds a cell (state/threads.cpp); returns the overflow cell when memory ran out.
struct RegionCell;
struct MetricCell;
struct LoopCell;
struct PeerCell;
struct EventCell;
Cell* add_cell(TableOf<Cell>& table, Key key, Site site) noexcept;
RegionCell* add_cell(TableOf<RegionCell>& table, Key key, Site site) noexcept;
MetricCell* add_cell(TableOf<MetricCell>& table, Key key, Site site) noexcept;
LoopCell* add_cell(TableOf<LoopCell>& table, Key key, Site site) noexcept;
PeerCell* add_cell(TableOf<PeerCell>& table, Key key, Site site) noexcept;  // state/peers.cpp
EventCell* add_cell(TableOf<EventCell>& table, Key key, Site site) noexcept;

// Returns the cell of (key, site), or null.
template <class C>
inline C* known_cell(const TableOf<C>& table, Key key, Site site) noexcept {
  for (std::uint64_t i = hash_of(key, site) & table.mask;; i = (i + 1) & table.mask) {
    C* const cell = table.index[i];
    if (__builtin_expect(cell == nullptr, 0)) return nullptr;
    if (__builtin_expect(cell->key == key && cell->site == site, 1)) return cell;
  }
}

// The same, but adds the cell if it does not exist; never null.
template <class C>
inline C* find_cell(TableOf<C>& table, Key key, Site site) noexcept {
  C* const cell = known_cell(table, key, site);
  return cell != nullptr ? cell : add_cell(table, key, site);
}

// Calls visit(cell) for all cells of a table except the overflow cell; each_indexed() only for those in its index.
template <class C, class Visit>
inline void each_cell(const TableOf<C>& table, Visit visit) {
  for (const SegmentOf<C>* s = table.newest; s != nullptr; s = s->before) {
    C* const end = s == table.newest ? table.free : s->end;
    for (C* cell = s->begin; cell != end; ++cell) visit(*cell);
  }
}
template <class C, class Visit>
inline void each_indexed(const TableOf<C>& table, Visit visit) {
  for (std::uint64_t i = 0; i <= table.mask; ++i) {
    if (table.index[i] != nullptr) visit(*table.index[i]);
  }
}

// False for calls in an uncounted region, and for cells that were cleared.  A cell without calls may hold the bytes of
// a request that another thread made, or an estimate of untimed calls (hot/untimed.h).
inline bool is_reported(const Cell& cell) noexcept {
  return region_of_key(cell.key) != uncounted_region &&
         (cell.calls | cell.time | cell.bytes_sent | cell.bytes_received) != 0;
}

inline void add_call(Cell& cell, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  if (__builtin_expect(spent < cell.time_min || cell.calls == 0, 0)) cell.time_min = spent;
  if (__builtin_expect(spent > cell.time_max, 0)) cell.time_max = spent;
  cell.calls += 1;
  cell.time += spent;
  cell.bytes_sent += sent;
  cell.bytes_received += received;
}

}  // namespace commlens
