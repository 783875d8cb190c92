// SPDX-License-Identifier: Apache-2.0
#include "core/hot/handles.h"

#include <algorithm>
#include <mutex>

#include "core/cold/locks.h"
#include "core/cold/memory.h"

namespace commlens {
namespace {

constexpr std::uint64_t first_capacity = 256;  // 4 KiB
std::mutex& mutex = locks::handles;

// Finds the entry of `handle`, or where it would go.
HandleMap::Slot& place(const HandleMap::Slots& s, std::uint64_t handle) noexcept {
  HandleMap::Slot* reusable = nullptr;
  for (std::uint64_t i = HandleMap::home(handle) & s.mask;; i = (i + 1) & s.mask) {
    HandleMap::Slot& slot = s.slot[i];
    const std::uint64_t found = slot.handle.load(std::memory_order_relaxed);
    if (found == handle) return slot;
    if (found == HandleMap::gone && reusable == nullptr) reusable = &slot;
    if (found == 0) return reusable != nullptr ? *reusable : slot;
  }
}

}  // namespace

bool HandleMap::put(std::uint64_t handle, void* value) noexcept {
  if (handle == 0 || handle == gone) return false;
  const std::lock_guard<std::mutex> lock(mutex);
  const Slots* s = slots.load(std::memory_order_relaxed);
  if (s == nullptr || (used + 1) * 2 > s->mask) {
    // The old array stays: another thread may be reading it.  All of them together are no larger than the new one.
    const std::uint64_t capacity = s == nullptr ? first_capacity : (s->mask + 1) * 2;
    auto* const memory = static_cast<char*>(map_memory(sizeof(Slots) + capacity * sizeof(Slot)));
    if (memory == nullptr) return false;
    auto* const grown = reinterpret_cast<Slots*>(memory);
    grown->mask = capacity - 1;
    grown->slot = reinterpret_cast<Slot*>(memory + sizeof(Slots));
    used = 0;
    for (std::uint64_t i = 0; s != nullptr && i <= s->mask; ++i) {
      const std::uint64_t old = s->slot[i].handle.load(std::memory_order_relaxed);
      if (old == 0 || old == gone) continue;
      Slot& slot = place(*grown, old);
      slot.value.store(s->slot[i].value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      slot.born = s->slot[i].born;
      slot.handle.store(old, std::memory_order_relaxed);
      ++used;
    }
    slots.store(grown, std::memory_order_release);
    s = grown;
  }
  Slot& slot = place(*s, handle);
  if (slot.handle.load(std::memory_order_relaxed) == 0) ++used;
  slot.value.store(value, std::memory_order_relaxed);
  slot.born = freed.load(std::memory_order_relaxed);
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
  const Slots* const s = slots.load(std::memory_order_relaxed);
  if (s == nullptr) return nullptr;
  Slot& slot = place(*s, handle);
  if (slot.handle.load(std::memory_order_relaxed) != handle) return nullptr;
  void* const value = slot.value.load(std::memory_order_relaxed);
  entry.value = value;
  slot.handle.store(gone, std::memory_order_release);
  // At the end of a run of used slots nothing is looked for beyond the ones that are gone: they are free again. Without
  // this, handles that never repeat would fill any table.
  auto i = static_cast<std::uint64_t>(&slot - s->slot);
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
  const Slots* const s = slots.load(std::memory_order_relaxed);
  const Slot* const slot = s == nullptr || handle == 0 ? nullptr : &place(*s, handle);
  const bool known = slot != nullptr && slot->handle.load(std::memory_order_relaxed) == handle;
  void* const value = known ? slot->value.load(std::memory_order_relaxed) : nullptr;
  if (known && slot->born <= since) return {value, false};  // it was there all the time
  // The first time it was taken since.
  const std::uint64_t kept = taken == nullptr ? 0 : std::min(taken_count, remembered);
  const std::uint64_t oldest = taken_count - kept;
  std::uint64_t i = taken_count;
  while (i > oldest && taken[(i - 1) % remembered].number >= since) --i;
  const bool all = i > oldest || oldest == 0;
  for (; i < taken_count; ++i) {
    const Taken& entry = taken[i % remembered];
    if (entry.handle == handle) return {entry.value, true};
  }
  // Not taken, as far as we remember: if it is known now, it was met for the first time since.
  return all ? Since{value, false} : Since{nullptr, true};
}

}  // namespace commlens
