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

  Site site;
  std::uint64_t where;  // the bits of a handle, or the index of a communicator; never 0 once it is used
  std::uint64_t what;   // procedure and region
  std::uint64_t freed;
  std::uint64_t word[most_words];  // of the arguments
  Cell* cell;
  PeerCell *out, *in;  // null: no message is counted
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
  template <class... Words>
  void note(Site s, std::uint64_t w, std::uint64_t of, Words... words) noexcept {
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

  template <class... Words>
  Repeat& place(Site site, std::uint64_t where, Words... words) noexcept {
    const std::uint64_t sum = ((site + where) + ... + words);
    return call[folded(sum ^ 0xd6e8feb86659fd93u, 0x9e3779b97f4a7c15u) % (1u << bits)];
  }
};

}  // namespace commlens
