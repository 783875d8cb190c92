// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/peer_cell.h"
#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// What a call was counted as, for the next one like it: from the same place in the program, of the same communicator
// (or window, or file), with the same arguments as far as they matter, in the same region.  Programs make the same
// calls again and again; then nothing has to be looked up but this.
//
// Handles mean what they meant as long as nothing was freed (HandleMap::freed); cells are never moved and never freed.
struct alignas(64) Repeat {
  static constexpr int most_words = 6;
  static constexpr std::uint64_t never = ~std::uint64_t{0};  // of `freed`: not a call that can be repeated
  // What calls of a procedure may have to be counted, beside the call.
  enum Parts : unsigned { nothing = 0, sends = 1, receives = 2, out_message = 4, in_message = 8 };

  Site site;
  std::uint64_t where;  // the bits of a handle, or the index of a communicator; never 0 once it is used
  std::uint64_t what;   // procedure and region
  std::uint64_t freed;
  std::uint64_t word[most_words];  // of the arguments
  Cell* cell;
  PeerCell *out, *in;
  std::uint64_t sent, received, out_bytes;

  static std::uint64_t what_of(std::uint32_t op, std::uint32_t region) noexcept {
    return std::uint64_t{op} << 20 | region;
  }

  template <class... Words>
  bool is(Site s, std::uint64_t w, std::uint64_t of, std::uint64_t now, Words... words) const noexcept {
    static_assert(sizeof...(words) <= most_words);
    const std::uint64_t* at = word;
    return site == s && where == w && what == of && freed == now && (... && (*at++ == words));
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
  __attribute__((noinline, cold)) void note(Site s, std::uint64_t w, std::uint64_t of, Words... words) noexcept {
    std::uint64_t* at = word;
    site = s;
    where = w;
    what = of;
    freed = never;
    (..., (*at++ = words));
  }
};
static_assert(sizeof(Repeat) == 128);

// Those of one thread: each call has one place it may be in.
struct Repeats {
  static constexpr unsigned bits = 8;
  Repeat call[1u << bits];
  std::uint32_t unlike;  // calls so far that were like none

  // One in eight of those is kept: a program with a thousand communicators in turn would write all of this again and
  // again, and what comes often has its turn soon.
  bool is_turn() noexcept { return this != &none && (unlike++ & 7) == 0; }

  static Repeats none;  // stays empty: of threads without memory for their own

  template <class... Words>
  Repeat& place(Site site, std::uint64_t where, Words... words) noexcept {
    const std::uint64_t mixed = ((site + where) + ... + words) * 0x9e3779b97f4a7c15u;
    constexpr unsigned above = 64 - bits - 7;  // the offset at once: an element has 2^7 bytes
    return *reinterpret_cast<Repeat*>(reinterpret_cast<char*>(call) + (mixed >> above & ~std::uint64_t{127}));
  }
  // Their cells have been cleared.
  void forget() noexcept {
    for (Repeat& r : call) r.freed = Repeat::never;
  }
};

}  // namespace commlens
