// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "core/hot/key.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Maps an MPI handle (its bits; never 0) to our record of the object.  Reading takes no lock; adding and removing take
// one (state/handles.cpp).  Entries are reused in place: a slot only changes after its handle was freed.
//
// A program may free a handle while a call of another thread uses it, and MPI may reuse the handle before that call
// ends.  A caller that looks a handle up after such a call therefore reads `freed` before the call, and checks
// none_freed_since() after find().  If that is false, find_since() returns what the handle stood for when the call
// began.
struct HandleMap {
  struct Slot {
    std::atomic<std::uint64_t> handle;  // 0: never used; gone: removed, reusable
    std::atomic<void*> value;           // null if the handle is 0 or gone
  };
  struct Slots {
    std::uint64_t mask;
    std::uint64_t* born;  // per slot: `freed` when it was put; guarded by the lock
    Slot slot[1];         // mask + 1 of them
  };
  // One handle that take() removed; kept in a ring of the most recent ones.
  struct Taken {
    std::uint64_t number;  // `freed` before the removal
    std::uint64_t handle;
    void* value;
  };
  static constexpr std::uint64_t gone = ~std::uint64_t{0};
  static constexpr std::uint64_t remembered = 1024;

  static const Slots nothing;  // the slots of an empty map
  std::atomic<const Slots*> slots{&nothing};
  std::uint64_t used = 0;  // slots whose handle is not 0; guarded by the lock, as are the following members
  Taken* taken = nullptr;  // ring of `remembered` entries; null until the first take()
  std::uint64_t taken_count = 0;

  static std::uint64_t hash(std::uint64_t handle) noexcept {
    return folded(handle ^ 0xd6e8feb86659fd93u, 0x9e3779b97f4a7c15u);
  }

  void* find(std::uint64_t handle) const noexcept {
    const Slots& s = *slots.load(std::memory_order_acquire);
    for (std::uint64_t i = hash(handle) & s.mask;; i = (i + 1) & s.mask) {
      const Slot& slot = s.slot[i];
      const std::uint64_t found = slot.handle.load(std::memory_order_acquire);
      if (__builtin_expect(found == handle, 1)) return slot.value.load(std::memory_order_acquire);
      if (found == 0) return nullptr;
    }
  }

  // Cold.  put() returns false when memory ran out.  take() removes the entry and returns its value, or null.
  bool put(std::uint64_t handle, void* value) noexcept;
  void* take(std::uint64_t handle) noexcept;

  // Number of take() calls so far, in all maps.
  static inline std::atomic<std::uint64_t> freed{0};

  // Call after find().  True when the result is what the handle stood for at `since`.
  static bool none_freed_since(std::uint64_t since) noexcept { return freed.load(std::memory_order_acquire) == since; }

  // Cold.  Returns what `handle` stood for when `freed` was `since`; a null value when it was unknown then.  `gone`:
  // the handle was freed since then, or may have been, so the caller must not pass it to MPI.
  struct Since {
    void* value;
    bool gone;
  };
  Since find_since(std::uint64_t handle, std::uint64_t since) const noexcept;
};

}  // namespace commlens
