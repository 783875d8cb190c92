// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/messages.h"
#include "core/hot/peer_cell.h"
#include "core/hot/samples.h"
#include "core/hot/table.h"
#include "core/hot/untimed.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Caches how a call was counted.  A later call with the same call site, communicator (or window, or file) and
// size-relevant arguments is counted in the same cells without further lookups.  The cache is searched before MPI is
// called, while the arguments are still in their registers.
//
// An entry is valid while nothing was freed since (HandleMap::freed), because handles are reused.  Cells are never
// moved and never freed.
struct alignas(64) CachedCall {
  static constexpr int most_words = 5;
  static constexpr std::uint64_t never = ~std::uint64_t{0};  // of `freed`: not a call that can be repeated
  // The counters to which a call of a procedure adds, besides calls and time.
  enum Parts : unsigned {
    nothing = 0,
    sends = 1,        // bytes sent
    receives = 2,     // bytes received
    out_message = 4,  // a message to one process, or the shape of a collective
    in_message = 8,   // a message from one process
    sampled = 16,     // a call of a stratum (hot/samples.h)
    messages = 32,    // the messages that go out and come in are sampled (hot/messages.h)
    operation = 64,   // begins a collective, which is sampled when it is complete
    may_skip = 128,   // most calls go untimed (hot/untimed.h)
    posts = 256,      // posts a receive: its begin is needed, timed or not
    stays = 512,      // the call began in the region of its entry, so the entry does not move to another one
    sampled_send = out_message | messages
  };
  static constexpr bool samples_what_it_sends(unsigned parts) noexcept {
    return (parts & sampled_send) == sampled_send;
  }

  Site site;
  std::uint64_t subject;  // see subject_of(); 0: never used
  std::uint64_t freed;
  std::uint32_t region;
  std::int32_t source;             // of the message that was received last; if sampled, or an operation: SampleFlag
  std::uint64_t word[most_words];  // of the arguments
  CachedCall* next;                // the call that followed last time; this entry itself if none has followed yet
  Cell* cell;
  // An untimed call sends or receives at most one message, so one of the two pointers is free.  It points to the cell
  // of the untimed calls; null: not created yet.
  union {
    PeerCell* out;
    Cell* untimed_in;  // if a message comes in
  };
  union {
    PeerCell* in;
    Cell* untimed_out;  // otherwise
    // Of collectives, which receive no single message:
    Stratum* stratum;     // of a blocking one
    Channel* operations;  // of a non-blocking one
  };
  union {
    std::uint64_t sent;
    Gap gap_in;
  };
  union {
    std::uint64_t received;
    Gap gap_out;
  };
  std::uint64_t out_bytes;

  // Of calls that may go untimed.
  Cell*& untimed(unsigned parts) noexcept { return (parts & in_message) != 0 ? untimed_in : untimed_out; }
  Gap& gap(unsigned parts) noexcept { return (parts & in_message) != 0 ? gap_in : gap_out; }
  // Calls are timed until the cell, which has so many now, has enough.
  void time_all(unsigned parts, std::uint64_t calls) noexcept {
    untimed(parts) = nullptr;
    gap(parts) = {turn_after(calls), 0, 0, 0};
  }

  // Procedure, and the bits of a handle or the index of a communicator: addresses of a program end below 2^54.  Never
  // 0.
  static std::uint64_t subject_of(std::uint32_t op, std::uint64_t object) noexcept {
    return object ^ std::uint64_t{op} << 54;
  }

  template <class... Words>
  bool is(Site s, std::uint64_t of, std::uint64_t now, Words... words) const noexcept {
    static_assert(sizeof...(words) <= most_words);
    const std::uint64_t* at = word;
    return site == s && subject == of && freed == now && (... && (static_cast<Words>(*at++) == words));
  }
  // Counts one more such call and returns its duration.  A thread may move to a core whose counter is slightly behind,
  // so that `end` is before `begin`: the duration is then 0.  The unsigned difference would exceed any maximum. pre:
  // the pointers that `parts` needs are set, and the cell has at least one call.
  template <unsigned parts>
  Ticks add(Ticks begin, Ticks end) const noexcept {
    Cell& c = *cell;
    Ticks spent = end - begin;
    if (__builtin_expect(spent < c.time_min, 0)) c.time_min = spent;
    if (__builtin_expect(spent > c.time_max, 0)) {
      if (end > begin) {
        c.time_max = spent;
      } else {
        c.time_min = spent = 0;
      }
    }
    c.calls += 1;
    c.time += spent;
    if constexpr ((parts & sends) != 0) c.bytes_sent += sent;
    if constexpr ((parts & receives) != 0) c.bytes_received += received;
    if constexpr ((parts & out_message) != 0) add_message(*out, out_bytes);
    if constexpr ((parts & in_message) != 0) add_message(*in, received);
    return spent;
  }
  // Counts one more such call that was not timed.  pre: its gap.turn > 0
  template <unsigned parts>
  Cell& add_untimed() noexcept {
    static_assert((parts & may_skip) != 0 && (parts & (in_message | out_message)) != (in_message | out_message));
    static_assert((parts & (sends | receives)) != (sends | receives));
    --gap(parts).turn;
    Cell& c = *untimed(parts);
    c.calls += 1;
    if constexpr ((parts & sends) != 0) c.bytes_sent += sent;
    if constexpr ((parts & receives) != 0) c.bytes_received += received;
    if constexpr ((parts & out_message) != 0) add_message(*out, out_bytes);
    if constexpr ((parts & in_message) != 0) add_message(*in, received);
    return c;
  }
  // Not inlined: keeps its registers out of the callers' fast path.
  template <class... Words>
  __attribute__((noinline, cold)) void note(Site s, std::uint64_t of, Words... words) noexcept {
    std::uint64_t* at = word;
    site = s;
    subject = of;
    freed = never;
    next = this;
    (..., (*at++ = words));
  }
};
static_assert(sizeof(CachedCall) == 128);

// Caches in which cell a message that a request received was counted.
struct Arrival {
  const Cell* maker;  // of the call that made the request; null: never used
  PeerCell* in;
  std::uint64_t bytes;
  std::int32_t source;

  bool is(const Cell* m, std::int32_t from, std::uint64_t size) const noexcept {
    return maker == m && source == from && bytes == size;
  }
};

// The call cache of one thread, two-way associative.  It starts small to stay in the first-level cache.  A program that
// cycles through thousands of calls gets a larger one (state/threads.cpp), whose slots are prefetched, because fetching
// one from memory takes longer than everything else.
struct CallCache {
  static constexpr std::uint64_t first = 1u << 8, most = 1u << 12;
  static constexpr std::uint32_t settled_misses = 64;  // misses in a row, without a communicator being freed
  std::uint64_t mask;                // of the offset of a slot: (number of slots - 1) * sizeof(CachedCall)
  std::uint64_t last_freed;          // HandleMap::freed at the last miss
  CachedCall* last;                  // the last hit
  std::uint32_t misses;              // all of them
  std::uint32_t misses_since_freed;  // misses since something was freed
  std::uint32_t conflicts;           // misses whose two slots held entries that are still valid
  Arrival arrivals[8];
  // Of calls in communicators, and of messages, without samples; per thread, so that no two threads write to one.
  Stratum unsampled;
  Channel no_channel;
  // When the latest receives were posted, by the lowest bits of their sequence numbers.
  static constexpr std::uint64_t most_posted = 256;
  Ticks posted[most_posted];
  std::uint64_t random;                                // state of the generator that chooses the calls that are timed
  alignas(2 * sizeof(CachedCall)) CachedCall call[2];  // or more

  static CallCache none;  // stays empty; for threads without memory for their own

  template <class... Words>
  CachedCall& place(Site site, std::uint64_t subject, Words... words) noexcept {
    // Handles are sequential numbers or addresses from an allocator.  This factor spreads multiples of both over the
    // bits that are used, 52 to 59 or 63.  With the golden ratio every ninth would land near the first.
    const std::uint64_t mixed = ((site + subject) + ... + std::uint64_t{words}) * 0xa8948c893b618677u;
    return *reinterpret_cast<CachedCall*>(reinterpret_cast<char*>(call) + (mixed >> 45 & mask));
  }
  static CachedCall& neighbor(CachedCall& place) noexcept {
    return *reinterpret_cast<CachedCall*>(reinterpret_cast<std::uintptr_t>(&place) ^ sizeof(CachedCall));
  }
  // Returns the entry of this call, or null.
  template <class... Words>
  __attribute__((always_inline)) CachedCall* find(Site site, std::uint64_t subject, std::uint64_t freed,
                                                  Words... words) noexcept {
    CachedCall* r = &place(site, subject, words...);
    if (__builtin_expect(r->is(site, subject, freed, words...), 1)) return r;
    r = &neighbor(*r);
    return r->is(site, subject, freed, words...) ? r : nullptr;
  }
  // Prefetches the slots of the call that followed `r` last time.  The time spent in MPI hides the latency.  Both
  // slots, because the first one searched may hold another call.
  __attribute__((always_inline)) void look_ahead(CachedCall& r) noexcept {
    if (__builtin_expect(mask <= first * sizeof(CachedCall), 1)) return;
    follow(r);
    __builtin_prefetch(r.next);
    __builtin_prefetch(reinterpret_cast<const char*>(r.next) + sizeof(CachedCall) / 2);
    __builtin_prefetch(&neighbor(*r.next));
  }
  void follow(CachedCall& r) noexcept {
    last->next = &r;
    last = &r;
  }
  // Counts a miss.  Returns true for every eighth one, so that programs with more distinct calls than slots do not
  // rewrite the cache continuously.
  bool count_miss() noexcept { return (misses++ & 7) == 0; }
  // Direct-mapped: cells next to each other differ in procedure or call site.
  Arrival& arrival(const Cell* maker, std::int32_t source) noexcept {
    return arrivals[(reinterpret_cast<std::uintptr_t>(maker) / sizeof(Cell) + static_cast<std::uint32_t>(source)) % 8];
  }
  // Invalidates all entries, after the cells were cleared.
  void forget() noexcept {
    for (Arrival& a : arrivals) a.maker = nullptr;
    for (CachedCall* r = call; r <= &call[mask / sizeof(CachedCall)]; ++r) r->freed = CachedCall::never;
  }
};

}  // namespace commlens
