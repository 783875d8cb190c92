// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "core/hot/key.h"

namespace [[gnu::visibility("hidden")]] commlens {

// From an MPI handle (its bits; never 0) to what we keep of the object.  Reading takes no lock; adding and
// removing take one (cold/handles.cpp).  Entries are reused in place: a slot only changes when its handle was freed.
//
// A program may free a handle while another thread's call with it is under way, and MPI may give the same handle to
// something else before that call ends.  Who looks a handle up after such a call reads `freed` before it and asks
// none_freed_since() afterwards; if not, find_since() knows what the handle stood for when the call began.
struct HandleMap {
  struct Slot {
    std::atomic<std::uint64_t> handle;  // 0: never used; gone: free again
    std::atomic<void*> value;           // null with either of them
  };
  struct Slots {
    std::uint64_t mask;
    std::uint64_t* born;  // of each, `freed` when it was put; guarded by the lock
    Slot slot[1];         // or more: mask + 1
  };
  // What was taken: the last ones, in a ring.
  struct Taken {
    std::uint64_t number;  // `freed` before it
    std::uint64_t handle;
    void* value;
  };
  static constexpr std::uint64_t gone = ~std::uint64_t{0};
  static constexpr std::uint64_t remembered = 1024;

  static const Slots nothing;  // of a map that is empty
  std::atomic<const Slots*> slots{&nothing};
  std::uint64_t used = 0;  // slots that are not 0; guarded by the lock, as is the rest
  Taken* taken = nullptr;  // `remembered` of them, from the first one on
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

  // Cold.  put: false when memory ran out.  take: removes the entry and returns its value, or null.
  bool put(std::uint64_t handle, void* value) noexcept;
  void* take(std::uint64_t handle) noexcept;

  // How many handles were taken so far, in all maps.
  static inline std::atomic<std::uint64_t> freed{0};

  // To be asked after find(): true when it found what the handle stood for at `since`.
  static bool none_freed_since(std::uint64_t since) noexcept { return freed.load(std::memory_order_acquire) == since; }

  // Cold.  What `handle` stood for when `freed` was `since`: null when it was not known then.  gone: it was freed
  // since, or may have been, and so MPI must not be asked about it.
  struct Since {
    void* value;
    bool gone;
  };
  Since find_since(std::uint64_t handle, std::uint64_t since) const noexcept;
};

}  // namespace commlens
