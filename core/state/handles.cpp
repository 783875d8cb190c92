// SPDX-License-Identifier: Apache-2.0
#include "core/hot/handles.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/base/locks.h"
#include "core/base/memory.h"

namespace commlens {
namespace {

constexpr std::uint64_t first_capacity = 256;  // 6 KiB
std::mutex& mutex = locks::handles;

// Returns the index of `handle`, or the index where it would be put.
std::uint64_t place(const HandleMap::Slots& s, std::uint64_t handle) noexcept {
  constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t reusable = none;
  for (std::uint64_t i = HandleMap::hash(handle) & s.mask;; i = (i + 1) & s.mask) {
    const std::uint64_t found = s.slot[i].handle.load(std::memory_order_relaxed);
    if (found == handle) return i;
    if (found == HandleMap::gone && reusable == none) reusable = i;
    if (found == 0) return reusable != none ? reusable : i;
  }
}

// Returns an empty array of slots; null when there is no memory.
HandleMap::Slots* make_slots(std::uint64_t capacity) noexcept {
  using Slots = HandleMap::Slots;
  const std::size_t bytes = offsetof(Slots, slot) + capacity * sizeof(HandleMap::Slot);
  auto* const memory = static_cast<char*>(map_memory(bytes + capacity * sizeof *Slots::born));
  if (memory == nullptr) return nullptr;
  auto* const made = reinterpret_cast<Slots*>(memory);
  made->mask = capacity - 1;
  made->born = reinterpret_cast<std::uint64_t*>(memory + bytes);
  return made;
}

}  // namespace

const HandleMap::Slots HandleMap::nothing{0, nullptr, {}};

bool HandleMap::put(std::uint64_t handle, void* value) noexcept {
  if (handle == 0 || handle == gone) return false;
  const std::lock_guard<std::mutex> lock(mutex);
  auto* s = const_cast<Slots*>(slots.load(std::memory_order_relaxed));
  if ((used + 1) * 3 > s->mask) {
    // The old array stays, because another thread may be reading it.  All old arrays together are no larger than the
    // new one.
    Slots* const grown = make_slots(s == &nothing ? first_capacity : (s->mask + 1) * 2);
    if (grown == nullptr) return false;
    used = 0;
    for (std::uint64_t i = 0; i <= s->mask; ++i) {
      const std::uint64_t old = s->slot[i].handle.load(std::memory_order_relaxed);
      if (old == 0 || old == gone) continue;
      const std::uint64_t to = place(*grown, old);
      grown->slot[to].value.store(s->slot[i].value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      grown->born[to] = s->born[i];
      grown->slot[to].handle.store(old, std::memory_order_relaxed);
      ++used;
    }
    slots.store(grown, std::memory_order_release);
    s = grown;
  }
  const std::uint64_t at = place(*s, handle);
  Slot& slot = s->slot[at];
  if (slot.handle.load(std::memory_order_relaxed) == 0) ++used;
  slot.value.store(value, std::memory_order_relaxed);
  s->born[at] = freed.load(std::memory_order_relaxed);
  slot.handle.store(handle, std::memory_order_release);
  return true;
}

void* HandleMap::take(std::uint64_t handle) noexcept {
  if (handle == 0 || handle == gone) return nullptr;  // MPI_FILE_NULL of MPICH is 0
  const std::lock_guard<std::mutex> lock(mutex);
  const std::uint64_t n = freed.load(std::memory_order_relaxed);
  if (taken == nullptr) taken = static_cast<Taken*>(map_memory(remembered * sizeof(Taken)));
  Taken none{};
  Taken& entry = taken == nullptr ? none : taken[taken_count % remembered];
  entry = {n, handle, nullptr};
  ++taken_count;
  freed.store(n + 1, std::memory_order_release);
  auto* const s = const_cast<Slots*>(slots.load(std::memory_order_relaxed));
  std::uint64_t i = place(*s, handle);
  Slot& slot = s->slot[i];
  if (slot.handle.load(std::memory_order_relaxed) != handle) return nullptr;
  void* const value = slot.value.load(std::memory_order_relaxed);
  entry.value = value;
  slot.handle.store(gone, std::memory_order_release);
  slot.value.store(nullptr, std::memory_order_release);  // find(0) stops at an unused slot, whose value must be null
  // If the next slot is unused, no search passes the removed slots before it: they become unused again.  Without this,
  // handles that never repeat would fill any table.
  if (s->slot[(i + 1) & s->mask].handle.load(std::memory_order_relaxed) == 0) {
    for (; s->slot[i].handle.load(std::memory_order_relaxed) == gone; i = (i - 1) & s->mask) {
      s->slot[i].handle.store(0, std::memory_order_release);
      --used;
    }
  }
  return value;
}

HandleMap::Since HandleMap::find_since(std::uint64_t handle, std::uint64_t since) const noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const Slots& s = *slots.load(std::memory_order_relaxed);
  const std::uint64_t at = place(s, handle);
  const bool known = handle != 0 && s.slot[at].handle.load(std::memory_order_relaxed) == handle;
  void* const value = known ? s.slot[at].value.load(std::memory_order_relaxed) : nullptr;
  if (known && s.born[at] <= since) return {value, false};  // put before `since`, and not taken later
  // Finds the first removal of this handle since then.
  const std::uint64_t kept = taken == nullptr ? 0 : std::min(taken_count, remembered);
  const std::uint64_t oldest = taken_count - kept;
  std::uint64_t i = taken_count;
  while (i > oldest && taken[(i - 1) % remembered].number >= since) --i;
  const bool all = i > oldest || oldest == 0;
  for (; i < taken_count; ++i) {
    const Taken& entry = taken[i % remembered];
    if (entry.handle == handle) return {entry.value, true};
  }
  // Not taken, as far as the ring shows.  If the handle is known now, it was put after `since`.
  return all ? Since{value, false} : Since{nullptr, true};
}

}  // namespace commlens
