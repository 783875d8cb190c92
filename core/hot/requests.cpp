// SPDX-License-Identifier: Apache-2.0
#include "core/hot/requests.h"

namespace commlens {

RequestTable::Level* RequestTable::level(int l) const noexcept {
  Level* const level = levels_[l].load(std::memory_order_acquire);
  return level == &nothing ? nullptr : level;
}

RequestTable::Found RequestTable::find_further(std::uint64_t handle) const noexcept {
  for (int l = 0; l < level_count; ++l) {
    const Level* const here = level(l);
    if (here == nullptr) break;
    const std::uint64_t home = here->place_of(handle);
    for (std::uint64_t step = 0; step < window; ++step) {
      const std::uint64_t place = (home + step * bucket_bytes) & here->last_place;
      Slot* const bucket = here->bucket(place);
      for (int i = 0; i < slots_per_bucket; ++i) {
        if (const Payload payload = payload_of(bucket[i], handle); payload != 0) return {&bucket[i], payload};
      }
      if (!here->spilled(place)) return {nullptr, 0};
    }
  }
  return {nullptr, 0};
}

bool RequestTable::put_beside(std::uint64_t handle, Payload payload) noexcept {
  const Level& first = *levels_[0].load(std::memory_order_acquire);
  const std::uint64_t place = first.place_of(handle);
  Slot* const bucket = first.bucket(place);
  Slot* free = nullptr;
  bool is_odd = first.spilled(place);
  for (int i = slots_per_bucket - 1; i >= 0; --i) {
    const std::uint64_t found = bucket[i].handle.load(std::memory_order_acquire);
    if (found == 0) free = &bucket[i];
    is_odd = is_odd || found == handle;
  }
  if (is_odd || free == nullptr || !claim(*free, handle)) return put_further(handle, payload);
  free->payload.store(payload, std::memory_order_release);
  return true;
}

bool RequestTable::put_further(std::uint64_t handle, Payload payload) noexcept {
  for (int l = 0; l < level_count; ++l) {
    if (level(l) == nullptr && !open_level(l)) return false;
    const Level& here = *level(l);
    const std::uint64_t home = here.place_of(handle);
    Slot* free = nullptr;
    bool more = true;  // requests with this home bucket may be stored further on
    for (std::uint64_t step = 0; step < window && (more || free == nullptr); ++step) {
      const std::uint64_t place = (home + step * bucket_bytes) & here.last_place;
      for (int i = 0; i < slots_per_bucket; ++i) {
        Slot& slot = here.bucket(place)[i];
        const std::uint64_t found = slot.handle.load(std::memory_order_acquire);
        if (found == handle) {
          Payload old = slot.payload.load(std::memory_order_acquire);
          // Checks the handle again, as in payload_of(): another request may have taken the slot between the two loads.
          if (old != 0 && slot.handle.load(std::memory_order_acquire) == handle &&
              slot.payload.compare_exchange_strong(old, payload, std::memory_order_acq_rel)) {
            return true;
          }
        } else if (found == 0 && free == nullptr) {
          free = &slot;
        }
      }
      more = here.spilled(place);
      if (free == nullptr) here.spill[place / bucket_bytes].store(1, std::memory_order_release);
    }
    if (free == nullptr) continue;
    if (!claim(*free, handle)) return put_further(handle, payload);  // another thread took the slot: search again
    free->payload.store(payload, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace commlens
