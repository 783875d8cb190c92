// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/peer_cell.h"
#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// What a call was counted as, for the next one like it: from the same place in the program, of the same communicator
// (or window, or file), with the same arguments as far as they matter.  Programs make the same calls again and again;
// then nothing has to be looked up but this, and that while the arguments are still in their registers: before MPI is
// called.
//
// Handles mean what they meant as long as nothing was freed (HandleMap::freed); cells are never moved and never freed.
struct alignas(64) Repeat {
  static constexpr int most_words = 5;
  static constexpr std::uint64_t never = ~std::uint64_t{0};  // of `freed`: not a call that can be repeated
  // What calls of a procedure may have to be counted, beside the call.
  enum Parts : unsigned { nothing = 0, sends = 1, receives = 2, out_message = 4, in_message = 8 };

  Site site;
  std::uint64_t what;  // see what_of(); 0: never used
  std::uint64_t freed;
  std::uint32_t region;
  std::int32_t source;             // of the message that was received last
  std::uint64_t word[most_words];  // of the arguments
  Repeat* next;                    // the call that came next, or this one; nothing to fetch costs as much as something
  Cell* cell;
  PeerCell *out, *in;
  std::uint64_t sent, received, out_bytes;

  // Procedure, and the bits of a handle or the index of a communicator: addresses of a program end below 2^54.  Never
  // 0.
  static std::uint64_t what_of(std::uint32_t op, std::uint64_t where) noexcept {
    return where ^ std::uint64_t{op} << 54;
  }

  template <class... Words>
  bool is(Site s, std::uint64_t of, std::uint64_t now, Words... words) const noexcept {
    static_assert(sizeof...(words) <= most_words);
    const std::uint64_t* at = word;
    return site == s && what == of && freed == now && (... && (*at++ == words));
  }
  // Returns what it has taken: 0 if it ended before it began, as it does for a thread that moves to a core whose
  // counter is a little behind.  That shows as longer than any other.
  // pre: all that counted it then is there, and the cell has a call.
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
  // By itself: what it needs stays in no register of those who need not ask.
  template <class... Words>
  __attribute__((noinline, cold)) void note(Site s, std::uint64_t of, Words... words) noexcept {
    std::uint64_t* at = word;
    site = s;
    what = of;
    freed = never;
    next = this;
    (..., (*at++ = words));
  }
};
static_assert(sizeof(Repeat) == 128);

// Where a message that a request received was counted, for the next one like it.
struct Arrival {
  const Cell* maker;  // of the call that made the request; null: never used
  PeerCell* in;
  std::uint64_t bytes;
  std::int32_t source;

  bool is(const Cell* m, std::int32_t from, std::uint64_t size) const noexcept {
    return maker == m && source == from && bytes == size;
  }
};

// Those of one thread: each call has two places it may be in, side by side.  Few at first, so that they are near each
// other; a program with thousands of calls in turn gets more (cold/threads.cpp), which are no longer in a near cache
// when their turn comes: to fetch one takes longer than all else does.
struct Repeats {
  static constexpr std::uint64_t first = 1u << 8, most = 1u << 12;
  static constexpr std::uint32_t calm = 64;  // calls that are like none, without a communicator being freed
  std::uint64_t mask;                        // of the offset of a place: (number of places - 1) * sizeof(Repeat)
  std::uint64_t last_freed;                  // HandleMap::freed when a call was like none
  Repeat* last;                              // the last call that was like one
  std::uint32_t unlike;                      // calls that were like none
  std::uint32_t since_freed;                 // those of them since something was freed last
  std::uint32_t crowded;                     // those whose places had others that are still good
  Arrival arrivals[8];
  alignas(2 * sizeof(Repeat)) Repeat call[2];  // or more

  static Repeats none;  // stays empty: of threads without memory for their own

  template <class... Words>
  Repeat& place(Site site, std::uint64_t what, Words... words) noexcept {
    // Handles follow each other, or lie where an allocator has put them.  Multiples of this factor are spread in the
    // bits that are looked at, 52 to 59 or 63; those of the golden ratio are not: every ninth is near the first.
    const std::uint64_t mixed = ((site + what) + ... + words) * 0xa8948c893b618677u;
    return *reinterpret_cast<Repeat*>(reinterpret_cast<char*>(call) + (mixed >> 45 & mask));
  }
  static Repeat& beside(Repeat& place) noexcept {
    return *reinterpret_cast<Repeat*>(reinterpret_cast<std::uintptr_t>(&place) ^ sizeof(Repeat));
  }
  // The call that is like this one, or null.
  template <class... Words>
  __attribute__((always_inline)) Repeat* find(Site site, std::uint64_t what, std::uint64_t freed,
                                              Words... words) noexcept {
    Repeat* r = &place(site, what, words...);
    if (__builtin_expect(r->is(site, what, freed, words...), 1)) return r;
    r = &beside(*r);
    return r->is(site, what, freed, words...) ? r : nullptr;
  }
  // Has the call fetched that came after `r` last time: MPI and the application take long enough until it is needed.
  // Both of its places, as the one that is looked at first may be the other's.
  __attribute__((always_inline)) void look_ahead(Repeat& r) noexcept {
    if (__builtin_expect(mask <= first * sizeof(Repeat), 1)) return;
    follow(r);
    __builtin_prefetch(r.next);
    __builtin_prefetch(reinterpret_cast<const char*>(r.next) + sizeof(Repeat) / 2);
    __builtin_prefetch(&beside(*r.next));
  }
  void follow(Repeat& r) noexcept {
    last->next = &r;
    last = &r;
  }
  // One in eight.
  bool is_turn() noexcept { return (unlike++ & 7) == 0; }
  // Neighbours have procedures, or places in the program, of their own, or the same one.
  Arrival& arrival(const Cell* maker, std::int32_t source) noexcept {
    return arrivals[(reinterpret_cast<std::uintptr_t>(maker) / sizeof(Cell) + static_cast<std::uint32_t>(source)) % 8];
  }
  // Their cells have been cleared.
  void forget() noexcept {
    for (Arrival& a : arrivals) a.maker = nullptr;
    for (Repeat* r = call; r <= &call[mask / sizeof(Repeat)]; ++r) r->freed = Repeat::never;
  }
};

}  // namespace commlens
