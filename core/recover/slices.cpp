// SPDX-License-Identifier: Apache-2.0
#include "core/recover/slices.h"

#include <algorithm>
#include <atomic>

#include "core/collect/package.h"
#include "core/recover/read.h"
#include "core/state/sums.h"

namespace commlens::arena {
namespace {

bool is_counted(const SliceEntry& entry) {
  return entry.slot < max_slices && entry.calls < beyond_all && entry.time < beyond_all &&
         entry.bytes_sent < beyond_all && entry.bytes_received < beyond_all;
}

}  // namespace

bool is_slice_width(Ticks width) {
  const std::uint64_t times = width / first_slice_width;
  return times != 0 && (times & (times - 1)) == 0 && width == times * first_slice_width;
}

SliceLogContent slices_of(const Segments& segments, const Blocks& blocks, const std::map<Key, SliceEntry>& totals,
                          const SliceLog& log, bool& is_damaged) {
  SliceLogContent sliced;
  if (is_slice_width(log.width)) sliced.width = log.width;
  std::uint64_t newest = 0;
  for (const auto& [at, block] : blocks) newest = std::max(newest, block->generation);
  std::map<Key, SliceEntry> noted;
  for (const auto& [at, block] : blocks) {
    if (block->generation != newest) continue;
    sliced.width = block->width;
    segments.each_keyed<SliceEntry>(at, block->count.load(std::memory_order_relaxed), [&](const SliceEntry& entry) {
      if (!is_counted(entry)) {
        is_damaged = true;
        return;
      }
      sliced.entries.push_back(entry);
      add_counters(noted[entry.key], entry);
    });
  }
  if ((log.slot & slices_ended) != 0) return sliced;
  const auto rest = [](std::uint64_t all, std::uint64_t part) { return all > part ? all - part : 0; };
  for (const auto& [key, total] : totals) {
    const SliceEntry& sum = noted[key];
    sliced.entries.push_back({key, std::min<std::uint64_t>(log.slot, max_slices - 1), rest(total.calls, sum.calls),
                              rest(total.time, sum.time), rest(total.bytes_sent, sum.bytes_sent),
                              rest(total.bytes_received, sum.bytes_received)});
  }
  return sliced;
}

Ticks after_current(const SliceLog& log, Ticks end) {
  const Ticks width = is_slice_width(log.width) ? log.width : first_slice_width;
  const std::uint64_t slot = std::min<std::uint64_t>(log.slot, max_slices - 1);
  const Ticks next = (slot + 1) * width;
  return end > next ? end - next : 0;
}

void cover(SliceLogContent& sliced, Ticks end) {
  constexpr Ticks widest = first_slice_width << (SliceRows::max_doublings - 1);
  int doublings = 0;
  while (end / (sliced.width << doublings) >= max_slices && sliced.width << doublings < widest) ++doublings;
  sliced.width <<= doublings;
  for (SliceEntry& entry : sliced.entries) entry.slot >>= doublings;
}

void spread(SliceLogContent& sliced, Key key, Ticks time, Ticks end) {
  const Ticks from = end > time ? end - time : 0;
  for (Ticks at = from; at < end;) {
    const std::uint64_t slot = std::min<std::uint64_t>(at / sliced.width, max_slices - 1);
    const Ticks next = slot == max_slices - 1 ? end : std::min(end, (slot + 1) * sliced.width);
    sliced.entries.push_back({key, slot, 0, next - at, 0, 0});
    at = next;
  }
}

}  // namespace commlens::arena
