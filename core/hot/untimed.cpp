// SPDX-License-Identifier: Apache-2.0
#include "core/hot/untimed.h"

#include "core/base/identity.h"
#include "core/hot/thread.h"

namespace commlens {

std::uint64_t timed_first = usual_timed_first;

namespace {

// At least one call of 64 is timed; and one of 8 while the standard error is more than 2 % of the time.
constexpr unsigned most_doublings = 6, doublings_of_inexact = 3;
constexpr std::uint64_t inexact_part = 50;

std::uint64_t random_number(std::uint64_t& state) noexcept { return mixed(state += 0x9e3779b97f4a7c15u); }

using Wide = unsigned __int128;
constexpr std::uint64_t lower_bits = (std::uint64_t{1} << variance_bits) - 1;

Wide variance_of(const Cell& untimed) noexcept { return (Wide{untimed.time_max} << variance_bits) + untimed.time_min; }

// Exact: with a counter that is slow, a call takes a few ticks.
void add_variance(Cell& untimed, Wide ticks_squared) noexcept {
  const Wide most = (Wide{lower_bits} << variance_bits) + lower_bits;
  const Wide sum = variance_of(untimed), all = ticks_squared < most - sum ? sum + ticks_squared : most;
  untimed.time_max = static_cast<std::uint64_t>(all >> variance_bits);
  untimed.time_min = static_cast<std::uint64_t>(all) & lower_bits;
}

Wide squared(std::uint64_t number) noexcept { return Wide{number} * number; }

unsigned next_doublings(const Cell& timed, const Cell& untimed) noexcept {
  // A block has at most 1/512 of all calls, so that the last one, which may be incomplete, matters little.
  constexpr unsigned bits_of_part = 9;
  const unsigned bits = 63u - static_cast<unsigned>(__builtin_clzll((timed.calls + untimed.calls) | 1));
  const unsigned by_calls = bits > bits_of_part ? bits - bits_of_part : 0;
  const bool is_inexact = variance_of(untimed) > squared((timed.time + untimed.time) / inexact_part);
  const unsigned most = is_inexact ? doublings_of_inexact : most_doublings;
  return by_calls < most ? by_calls : most;
}

// Returns the cell of the untimed calls of `timed`; null: there is no memory for it.
Cell* untimed_cell(Thread& thread, const Cell& timed) noexcept {
  const Key key = untimed_key(timed.key);
  Cell* const cell = key == 0 ? nullptr : find_cell(thread.table, key, timed.site);
  return cell != nullptr && cell->key == key ? cell : nullptr;
}

// Adds what a call stands for besides itself.
void add_estimate(Thread& thread, Cell& untimed, Ticks estimate) noexcept {
  untimed.time += estimate;
  if (region_of_key(untimed.key) != uncounted_region) thread.mpi += estimate;
}

}  // namespace

void plan_untimed(Thread& thread, const CachedCall& r, const Cell& counted, Cell*& untimed, Gap& gap,
                  Ticks spent) noexcept {
  const Cell& timed = *r.cell;
  if (gap.turn != 1) {  // it would have gone untimed, but was timed for another reason: it stands for itself
    --gap.turn;
    return;
  }
  const bool is_cleared = r.freed == CachedCall::never;  // in this call, and the block with it
  if (is_cleared || (gap.doublings == 0 && timed.calls < timed_first)) {
    gap = {turn_after(timed.calls), 0, 0, 0};
    return;
  }
  if (untimed == nullptr) untimed = untimed_cell(thread, timed);
  if (untimed == nullptr) {  // there is no memory: all are timed
    gap.turn = turn_after(0);
    return;
  }
  const std::uint64_t stands_for = std::uint64_t{1} << gap.doublings;
  const bool is_usual = counted.key == timed.key;
  // The part of its time that belongs to this entry's calls.
  const Ticks own = is_usual ? spent : 0;
  if (stands_for > 1) {
    Cell* const cell = is_usual ? untimed : untimed_cell(thread, counted);
    if (cell != nullptr) add_estimate(thread, *cell, spent * (stands_for - 1));
    // Half of the squared difference of two calls has the mean of the variance within a block, or more where the cost
    // changes from block to block.
    const std::uint64_t difference = own > gap.last ? own - gap.last : gap.last - own;
    add_variance(*untimed, squared(difference) * squared(stands_for) / 2);
    if (!is_usual && cell != nullptr) add_variance(*cell, squared(spent) * squared(stands_for));
  }
  const unsigned doublings = next_doublings(timed, *untimed);
  const std::uint64_t size = std::uint64_t{1} << doublings;
  if (size > stands_for) {
    // The last block may be cut after any number k of its n calls.  Then the square of the error is k (n - k) times
    // that of a call in the mean, at most n^2 / 4.
    add_variance(*untimed, squared(own) * (squared(size) - squared(stands_for)) / 4);
  }
  const std::uint64_t place = random_number(thread.call_cache->random) & (size - 1);
  gap.turn = static_cast<std::int16_t>(gap.rest + place);
  gap.rest = static_cast<std::uint8_t>(size - 1 - place);
  gap.doublings = static_cast<std::uint8_t>(doublings);
  gap.last = own < 0xffffffffu ? static_cast<std::uint32_t>(own) : 0xffffffffu;
}

}  // namespace commlens
