// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace [[gnu::visibility("hidden")]] commlens {

// From an MPI handle (its bits; never 0) to what we keep of the object.  Reading takes no lock; adding and
// removing take one (cold/handles.cpp).  Entries are reused in place: a slot only changes when its handle was
// freed, and a program that uses a handle while another thread frees it is wrong already.
struct HandleMap {
  struct Slot {
    std::atomic<std::uint64_t> handle;  // 0: never used; gone: free again
    std::atomic<void*> value;
  };
  struct Slots {
    std::uint64_t mask;  // capacity - 1
    Slot* slot;
  };
  static constexpr std::uint64_t gone = ~std::uint64_t{0};

  std::atomic<const Slots*> slots{nullptr};
  std::uint64_t used = 0;  // slots that are not 0; guarded by the lock

  static std::uint64_t home(std::uint64_t handle) noexcept {
    const std::uint64_t h = handle * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
  }

  void* find(std::uint64_t handle) const noexcept {
    const Slots* const s = slots.load(std::memory_order_acquire);
    if (s == nullptr || handle == 0) return nullptr;
    for (std::uint64_t i = home(handle) & s->mask;; i = (i + 1) & s->mask) {
      const std::uint64_t found = s->slot[i].handle.load(std::memory_order_acquire);
      if (found == handle) return s->slot[i].value.load(std::memory_order_relaxed);
      if (found == 0) return nullptr;
    }
  }

  // Cold.  put: false when memory ran out.  take: removes the entry and returns its value, or null.
  bool put(std::uint64_t handle, void* value) noexcept;
  void* take(std::uint64_t handle) noexcept;
};

}  // namespace commlens
