// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "core/hot/messages.h"
#include "core/hot/peer_cell.h"
#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// The facts stored about a request until it completes, in one word:
//
//   63..48    47..6                            5..0
//   sequence  cell that made it, or the        flags
//             PersistentRequest
//
// Both are 64-byte aligned.  The sequence number distinguishes a request from an older one with the same handle.
using Payload = std::uint64_t;

namespace RequestFlag {
inline constexpr Payload active = 1;      // started, not yet completed
inline constexpr Payload persistent = 2;  // the pointer is a PersistentRequest
inline constexpr Payload receives = 4;    // its status has the number of bytes received
inline constexpr Payload awaited = 8;     // its completion creates a communicator, or ends a sampled collective
inline constexpr Payload cancelled = 16;  // the application has called MPI_Cancel for it
inline constexpr Payload message = 32;    // its status has the sender of the received message
inline constexpr Payload all = 63;
}  // namespace RequestFlag

// The block that a collective has for one peer.
struct Share {
  int peer;  // below 0: end of the array
  std::uint64_t bytes;
};

// Record of a persistent request, which moves the same bytes each time it is started.
struct alignas(64) PersistentRequest {
  static constexpr int no_tag = -1;
  Cell* maker;
  std::uint64_t sent, received;
  int to, from;             // the peer; below 0: none, or found in the status
  std::uint64_t exchanged;  // bytes; collectives only
  Share* shares;            // null: the same block size for all peers
  Flow shape;
  int tag;  // of a message that it sends; no_tag: not sampled, such as partitions.  Of a collective: SampleFlag
  Channel* operations;  // of a collective: to which its starts belong; null: not sampled
};

inline constexpr Payload pointer_bits = ((Payload{1} << 48) - 1) & ~RequestFlag::all;

inline Payload make_payload(const void* pointer, Payload flags, std::uint64_t sequence) noexcept {
  return (sequence << 48) | reinterpret_cast<Payload>(pointer) | flags;
}
inline PersistentRequest* persistent_of(Payload p) noexcept {
  return reinterpret_cast<PersistentRequest*>(p & pointer_bits);
}
inline Cell* maker_of(Payload p) noexcept {
  return (p & RequestFlag::persistent) != 0 ? persistent_of(p)->maker : reinterpret_cast<Cell*>(p & pointer_bits);
}

// All requests of all threads, until they complete or, if persistent, are freed.  One thread may start a request and
// another complete it.  No lock; no allocation except mapping the next level when one is full.
//
// A level is an array of buckets, each a cache line with four slots.  A request is stored in its home bucket, in one
// of the three after it, or in the next, larger level.  `spill` of a bucket is set permanently once the bucket has
// passed a request on.  Only then must a search continue beyond that bucket.
//
// Slot protocol: handle 0 is free.
// claim: handle 0 -> h by compare-and-swap, then the payload.
// release: payload -> 0 by compare-and-swap (the winner owns the release), then handle -> 0.
// A slot with a handle and payload 0 is in transition and belongs to no request.  MPI may reuse a handle before we have
// released it: put() then replaces the payload in place if it finds the handle, and the compare-and-swap of the late
// release fails.
class RequestTable {
 public:
  struct Slot {
    std::atomic<std::uint64_t> handle;
    std::atomic<Payload> payload;
  };

  struct Found {
    Slot* slot;
    Payload payload;  // 0: unknown request
  };

  // Returns the slot and payload of a request.  Fast path: the home bucket of the first level.
  Found find(std::uint64_t handle) const noexcept {
    const Level& first = *levels_[0].load(std::memory_order_acquire);
    const std::uint64_t place = first.place_of(handle);
    Slot* const bucket = first.bucket(place);
#pragma GCC unroll 4
    for (int i = 0; i < slots_per_bucket; ++i) {
      if (const Payload payload = payload_of(bucket[i], handle); payload != 0) return {&bucket[i], payload};
    }
    return __builtin_expect(first.spilled(place), 0) ? find_further(handle) : Found{nullptr, 0};
  }

  // Adds a request; returns false when memory ran out.  Fast path: the home bucket of the first level is empty, as most
  // are.
  bool put(std::uint64_t handle, Payload payload) noexcept {
    const Level& first = *levels_[0].load(std::memory_order_acquire);
    const std::uint64_t place = first.place_of(handle);
    Slot* const bucket = first.bucket(place);
    std::uint64_t used = 0;
#pragma GCC unroll 4
    for (int i = 0; i < slots_per_bucket; ++i) used |= bucket[i].handle.load(std::memory_order_acquire);
    if (__builtin_expect((used | first.spill[place / bucket_bytes].load(std::memory_order_acquire)) != 0, 0)) {
      return put_beside(handle, payload);
    }
    if (__builtin_expect(!claim(*bucket, handle), 0)) return put_further(handle, payload);
    bucket->payload.store(payload, std::memory_order_release);
    return true;
  }

  // Removes a request, unless MPI has reused its handle in the meantime.
  static void release(const Found& found) noexcept {
    Payload expected = found.payload;
    if (is_for_one_thread()) {
      if (found.slot->payload.load(std::memory_order_relaxed) != expected) return;
      found.slot->payload.store(0, std::memory_order_release);
    } else if (!found.slot->payload.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
      return;
    }
    found.slot->handle.store(0, std::memory_order_release);
  }

  // Cold.  Whether no two threads use the tables at the same time, so that plain stores do what a compare-and-swap
  // does, which takes longer than the rest.  At first they may.
  static void set_for_one_thread(bool is) noexcept { __atomic_store_n(&for_one_thread, is, __ATOMIC_RELAXED); }

  // Cold.  True when is(cell of the maker, payload) holds for any request.
  template <class Is>
  bool any(Is is) const noexcept {
    for (const auto& at : levels_) {
      const Level* const level = at.load(std::memory_order_acquire);
      if (level == nullptr || level == &nothing) break;
      for (std::uint64_t i = 0; i <= level->last_place / sizeof(Slot) + slots_per_bucket - 1; ++i) {
        const Payload payload = level->slot[i].payload.load(std::memory_order_acquire);
        if (payload != 0 && is(*maker_of(payload), payload)) return true;
      }
    }
    return false;
  }

  // Changes the flags of a persistent request.  Returns the new payload, or 0 if the slot holds another request by now.
  static Payload change(const Found& found, Payload payload) noexcept {
    Payload expected = found.payload;
    return found.slot->payload.compare_exchange_strong(expected, payload, std::memory_order_acq_rel) ? payload : 0;
  }

 private:
  static constexpr int slots_per_bucket = 4;
  static constexpr std::uint64_t window = 4;
  static constexpr int level_count = 5;  // 1,024 slots, 16 times as many in each next level; the last has 67 million

  static constexpr std::uint64_t bucket_bytes = slots_per_bucket * sizeof(Slot);

  // A place is the offset of a bucket in bytes.
  struct alignas(bucket_bytes) Level {
    std::uint64_t last_place;                           // a mask: (number of buckets - 1) * bucket_bytes
    std::atomic<std::uint8_t>* spill;                   // one per bucket, behind the slots
    alignas(bucket_bytes) Slot slot[slots_per_bucket];  // or more

    std::uint64_t place_of(std::uint64_t handle) const noexcept {
      return handle * 0x9e3779b97f4a7c15u >> 14 & last_place;
    }
    Slot* bucket(std::uint64_t place) const noexcept {
      return reinterpret_cast<Slot*>(reinterpret_cast<std::uintptr_t>(slot) + place);
    }
    bool spilled(std::uint64_t place) const noexcept {
      return spill[place / bucket_bytes].load(std::memory_order_acquire) != 0;
    }
  };

  // Of an empty table, the first level: a search finds nothing there, and no room.
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static inline std::atomic<std::uint8_t> no_spill{0};
  static inline Level nothing{0, &no_spill, {{never, 0}, {never, 0}, {never, 0}, {never, 0}}};

  static inline bool for_one_thread = false;
  static bool is_for_one_thread() noexcept { return __atomic_load_n(&for_one_thread, __ATOMIC_RELAXED); }

  // Takes a slot that was free.  Returns false if another thread was faster.
  static bool claim(Slot& slot, std::uint64_t handle) noexcept {
    if (is_for_one_thread()) {
      slot.handle.store(handle, std::memory_order_release);
      return true;
    }
    std::uint64_t expected = 0;
    return slot.handle.compare_exchange_strong(expected, handle, std::memory_order_acq_rel);
  }

  // Returns the payload if the slot holds this request, else 0.
  static Payload payload_of(const Slot& slot, std::uint64_t handle) noexcept {
    if (slot.handle.load(std::memory_order_acquire) != handle) return 0;
    const Payload payload = slot.payload.load(std::memory_order_acquire);
    // Checks the handle again: another request may have taken the slot between the two loads.
    return slot.handle.load(std::memory_order_acquire) == handle ? payload : 0;
  }

  Found find_further(std::uint64_t handle) const noexcept;
  bool put_beside(std::uint64_t handle, Payload payload) noexcept;  // in the home bucket, if all is usual there
  bool put_further(std::uint64_t handle, Payload payload) noexcept;
  bool open_level(int l) noexcept;     // cold
  Level* level(int l) const noexcept;  // null: not open yet

  std::atomic<Level*> levels_[level_count]{{&nothing}, {nullptr}, {nullptr}, {nullptr}, {nullptr}};
};

}  // namespace commlens
