// SPDX-License-Identifier: Apache-2.0
#include "core/hot/requests.h"

#include <mutex>
#include <new>

#include "core/base/memory.h"
#include "core/state/requests.h"

namespace commlens {
namespace {

std::mutex mutex;

// What a record is while it is not in use.
struct FreeRecord {
  FreeRecord* next;
};
FreeRecord* free_list = nullptr;

void set_free(PersistentRequest* record) noexcept { free_list = new (record) FreeRecord{free_list}; }

}  // namespace

bool RequestTable::open_level(int l) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  Level& level = levels_[l];
  if (level.slots.load(std::memory_order_relaxed) != nullptr) return true;
  std::uint64_t buckets = 256;
  for (int i = 0; i < l; ++i) buckets *= 16;
  const std::uint64_t slot_bytes = buckets * slots_per_bucket * sizeof(Slot);
  auto* const memory = static_cast<char*>(map_memory(slot_bytes + buckets));
  if (memory == nullptr) return false;
  level.buckets = buckets;
  level.spill = reinterpret_cast<std::atomic<std::uint8_t>*>(memory + slot_bytes);
  level.slots.store(reinterpret_cast<Slot*>(memory), std::memory_order_release);
  return true;
}

PersistentRequest* new_persistent() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  if (free_list == nullptr) {
    constexpr std::size_t some = 64;
    auto* const memory = static_cast<PersistentRequest*>(map_memory(some * sizeof(PersistentRequest)));
    if (memory == nullptr) return nullptr;
    for (std::size_t i = 0; i < some; ++i) set_free(&memory[i]);
  }
  FreeRecord* const record = free_list;
  free_list = record->next;
  return new (record) PersistentRequest;
}

void free_persistent(PersistentRequest* p) noexcept {
  delete[] p->shares;
  const std::lock_guard<std::mutex> lock(mutex);
  set_free(p);
}

}  // namespace commlens
