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
    const Level& first = levels_[0];
    Slot* const slots = first.slots.load(std::memory_order_acquire);
    if (slots == nullptr) return {nullptr, 0};
    const std::uint64_t home = hash(handle) & first.mask();
    Slot* const bucket = slots + home * slots_per_bucket;
#pragma GCC unroll 4
    for (int i = 0; i < slots_per_bucket; ++i) {
      if (const Payload payload = payload_of(bucket[i], handle); payload != 0) return {&bucket[i], payload};
    }
    return __builtin_expect(first.spilled(home), 0) ? find_further(handle) : Found{nullptr, 0};
  }

  // Adds a request; returns false when memory ran out.
  bool put(std::uint64_t handle, Payload payload) noexcept {
    const Level& first = levels_[0];
    Slot* const slots = first.slots.load(std::memory_order_acquire);
    if (__builtin_expect(slots == nullptr, 0)) return put_further(handle, payload);
    const std::uint64_t home = hash(handle) & first.mask();
    Slot* const bucket = slots + home * slots_per_bucket;
    Slot* free = nullptr;
    bool is_odd = first.spilled(home);
#pragma GCC unroll 4
    for (int i = slots_per_bucket - 1; i >= 0; --i) {
      const std::uint64_t found = bucket[i].handle.load(std::memory_order_acquire);
      if (found == 0) free = &bucket[i];
      is_odd = is_odd || found == handle;
    }
    std::uint64_t expected = 0;
    if (__builtin_expect(is_odd || free == nullptr, 0) ||
        !free->handle.compare_exchange_strong(expected, handle, std::memory_order_acq_rel)) {
      return put_further(handle, payload);
    }
    free->payload.store(payload, std::memory_order_release);
    return true;
  }

  // Removes a request, unless MPI has reused its handle in the meantime.
  static void release(const Found& found) noexcept {
    Payload expected = found.payload;
    if (found.slot->payload.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
      found.slot->handle.store(0, std::memory_order_release);
    }
  }

  // Cold.  True when is(cell of the maker, payload) holds for any request.
  template <class Is>
  bool any(Is is) const noexcept {
    for (const Level& level : levels_) {
      const Slot* const slots = level.slots.load(std::memory_order_acquire);
      if (slots == nullptr) break;
      for (std::uint64_t i = 0; i < level.buckets * slots_per_bucket; ++i) {
        const Payload payload = slots[i].payload.load(std::memory_order_acquire);
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

  struct Level {
    std::atomic<Slot*> slots{nullptr};
    std::atomic<std::uint8_t>* spill = nullptr;  // one per bucket, behind the slots
    std::uint64_t buckets = 0;
    std::uint64_t mask() const noexcept { return buckets - 1; }
    bool spilled(std::uint64_t bucket) const noexcept { return spill[bucket].load(std::memory_order_acquire) != 0; }
  };

  static std::uint64_t hash(std::uint64_t handle) noexcept {
    const std::uint64_t h = handle * 0x9e3779b97f4a7c15u;
    return h >> 20;
  }

  // Returns the payload if the slot holds this request, else 0.
  static Payload payload_of(const Slot& slot, std::uint64_t handle) noexcept {
    if (slot.handle.load(std::memory_order_acquire) != handle) return 0;
    const Payload payload = slot.payload.load(std::memory_order_acquire);
    // Checks the handle again: another request may have taken the slot between the two loads.
    return slot.handle.load(std::memory_order_acquire) == handle ? payload : 0;
  }

  Found find_further(std::uint64_t handle) const noexcept;
  bool put_further(std::uint64_t handle, Payload payload) noexcept;
  bool open_level(int l) noexcept;  // cold

  Level levels_[level_count];
};

}  // namespace commlens
