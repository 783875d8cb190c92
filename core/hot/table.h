// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/clock.h"
#include "core/hot/key.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The counters of one key at one call site, on one thread: one cache line.
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

// The cells of one thread: an open-addressing index of pointers into segments that never move, so that a request
// may keep the cell of the call that made it.
//
// Invariant: used <= capacity / 2 for a grown table, so that a probe ends; capacity is a power of two.
// A table that cannot grow counts into `overflow`: no call is dropped, the report names it.
struct Table {
  Cell** index;            // capacity entries
  std::uint64_t capacity;  // 0 until the thread's first call
  std::uint64_t used;
  Cell* free;         // next free cell of the newest segment
  Cell* segment_end;  // its end
  Cell overflow;      // key: no communicator, unknown procedure
};

inline std::uint64_t hash_of(Key key, Site site) noexcept {
  const std::uint64_t h = (key ^ (site * 0x9e3779b97f4a7c15u)) * 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

// Adds the cell (cold/threads.cpp); returns the overflow cell when memory ran out.
Cell* add_cell(Table& table, Key key, Site site) noexcept;

// Returns the cell of (key, site), new if need be; never null.
inline Cell* find_cell(Table& table, Key key, Site site) noexcept {
  if (__builtin_expect(table.capacity != 0, 1)) {
    const std::uint64_t mask = table.capacity - 1;
    for (std::uint64_t i = hash_of(key, site) & mask;; i = (i + 1) & mask) {
      Cell* const cell = table.index[i];
      if (cell == nullptr) break;
      if (cell->key == key && cell->site == site) return cell;
    }
  }
  return add_cell(table, key, site);
}

inline void add_call(Cell& cell, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  if (spent < cell.time_min || cell.calls == 0) cell.time_min = spent;
  if (spent > cell.time_max) cell.time_max = spent;
  cell.calls += 1;
  cell.time += spent;
  cell.bytes_sent += sent;
  cell.bytes_received += received;
}

}  // namespace commlens
