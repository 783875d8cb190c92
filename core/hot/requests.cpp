// SPDX-License-Identifier: Apache-2.0
#include "core/hot/requests.h"

namespace commlens {

RequestTable::Found RequestTable::find_further(std::uint64_t handle) const noexcept {
  for (const Level& level : levels_) {
    Slot* const slots = level.slots.load(std::memory_order_acquire);
    if (slots == nullptr) break;
    const std::uint64_t home = hash(handle) & level.mask();
    for (std::uint64_t step = 0; step < window; ++step) {
      const std::uint64_t bucket = (home + step) & level.mask();
      for (int i = 0; i < slots_per_bucket; ++i) {
        Slot& slot = slots[bucket * slots_per_bucket + static_cast<std::uint64_t>(i)];
        if (const Payload payload = payload_of(slot, handle); payload != 0) return {&slot, payload};
      }
      if (!level.spilled(bucket)) return {nullptr, 0};
    }
  }
  return {nullptr, 0};
}

bool RequestTable::put_further(std::uint64_t handle, Payload payload) noexcept {
  for (int l = 0; l < level_count; ++l) {
    Level& level = levels_[l];
    if (level.slots.load(std::memory_order_acquire) == nullptr && !open_level(l)) return false;
    Slot* const slots = level.slots.load(std::memory_order_acquire);
    const std::uint64_t home = hash(handle) & level.mask();
    Slot* free = nullptr;
    bool more = true;  // requests with this home bucket may be stored further on
    for (std::uint64_t step = 0; step < window && (more || free == nullptr); ++step) {
      const std::uint64_t bucket = (home + step) & level.mask();
      for (int i = 0; i < slots_per_bucket; ++i) {
        Slot& slot = slots[bucket * slots_per_bucket + static_cast<std::uint64_t>(i)];
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
      more = level.spilled(bucket);
      if (free == nullptr) level.spill[bucket].store(1, std::memory_order_release);
    }
    while (free != nullptr) {
      std::uint64_t expected = 0;
      if (free->handle.compare_exchange_strong(expected, handle, std::memory_order_acq_rel)) {
        free->payload.store(payload, std::memory_order_release);
        return true;
      }
      return put_further(handle, payload);  // another thread took the slot: search again
    }
  }
  return false;
}

}  // namespace commlens
