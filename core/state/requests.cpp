// SPDX-License-Identifier: Apache-2.0
#include "core/hot/requests.h"

#include <cstddef>
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
  if (level(l) != nullptr) return true;
  std::uint64_t buckets = 256;
  for (int i = 0; i < l; ++i) buckets *= 16;
  const std::uint64_t level_bytes = offsetof(Level, slot) + buckets * bucket_bytes;
  auto* const memory = static_cast<char*>(map_memory(level_bytes + buckets));
  if (memory == nullptr) return false;
  auto* const opened = reinterpret_cast<Level*>(memory);
  opened->last_place = (buckets - 1) * bucket_bytes;
  opened->spill = reinterpret_cast<std::atomic<std::uint8_t>*>(memory + level_bytes);
  levels_[l].store(opened, std::memory_order_release);
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
