// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena/arena.h"
#include "core/base/memory.h"

namespace commlens {

// Keeps samples in lists of chunks, which are in the arena so that they survive the process.  A list has the members
// first, last, kept and level; a chunk has key, count, level, next and sample.  Guarded by locks::samples.
template <class Chunk, arena::Kind kind>
class SampleStore {
 public:
  explicit constexpr SampleStore(std::uint64_t most_bytes) noexcept : most_bytes_(most_bytes) {}
  void limit(std::uint64_t most_bytes) noexcept { most_bytes_ = most_bytes; }

  // Returns whether a chunk is free, or there is memory for more.
  bool has_room() noexcept { return free_ != nullptr || add_chunks(); }

  // Appends a sample.  pre: the last chunk has room, or has_room()
  template <class List, class Sample>
  void append(List& list, const Sample& sample) noexcept {
    Chunk* last = list.last;
    if (last == nullptr || last->count == Chunk::capacity) {
      Chunk* const chunk = free_;
      free_ = chunk->next;
      chunk->next = nullptr;
      chunk->level = list.level;
      chunk->key = list.key;
      (last == nullptr ? list.first : last->next) = chunk;
      list.last = last = chunk;
    }
    const std::uint32_t n = last->count;
    last->sample[n] = sample;
    set_count(*last, n + 1);
    ++list.kept;
  }
  template <class List>
  static bool needs_chunk(const List& list) noexcept {
    return list.last == nullptr || list.last->count == Chunk::capacity;
  }

  // Goes one level up and keeps only the samples for which keep() is true.  A process that is killed meanwhile leaves
  // some samples twice, which the reader of the arena recognises.
  template <class List, class Keep>
  void raise_level(List& list, Keep keep) noexcept {
    ++list.level;
    Chunk* to = list.first;
    std::uint32_t at = 0;
    list.kept = 0;
    for (Chunk* from = list.first; from != nullptr; from = from->next) {
      const std::uint32_t n = from->count;
      for (std::uint32_t i = 0; i < n; ++i) {
        if (!keep(from->sample[i])) continue;
        if (at == Chunk::capacity) {
          set_count(*to, at);
          to = to->next;
          at = 0;
        }
        to->sample[at++] = from->sample[i];
        ++list.kept;
      }
    }
    if (to == nullptr) return;
    set_count(*to, at);
    while (to->next != nullptr) {
      Chunk* const rest = to->next;
      to->next = rest->next;
      release(rest);
    }
    list.last = to;
    for (Chunk* c = list.first; c != nullptr; c = c->next) c->level = list.level;
  }

  // Drops all samples of a list.
  template <class List>
  void clear(List& list) noexcept {
    while (list.first != nullptr) {
      Chunk* const next = list.first->next;
      release(list.first);
      list.first = next;
    }
    list.last = nullptr;
    list.kept = 0;
  }

 private:
  static void set_count(Chunk& chunk, std::uint32_t count) noexcept {
    __atomic_store_n(&chunk.count, count, __ATOMIC_RELEASE);
  }
  void release(Chunk* chunk) noexcept {
    set_count(*chunk, 0);
    chunk->key = 0;
    chunk->next = free_;
    free_ = chunk;
  }
  bool add_chunks() noexcept {
    constexpr std::size_t at_once = 16, bytes = at_once * sizeof(Chunk);
    if (bytes_ + bytes > most_bytes_) return false;
    auto* const chunks = static_cast<Chunk*>(arena::allocate(kind, bytes));
    if (chunks == nullptr) return false;
    bytes_ += bytes;
    for (std::size_t i = at_once; i-- > 0;) release(&chunks[i]);
    return true;
  }

  Chunk* free_ = nullptr;
  std::uint64_t bytes_ = 0, most_bytes_;
};

// Memory for the lists themselves, which is never given back.
template <class List, std::uint64_t most_bytes>
class ListStore {
 public:
  // Returns a list of zeros; null: no memory.
  List* take() noexcept {
    if (spare_ == end_) {
      constexpr std::size_t bytes = 64 * sizeof(List);
      spare_ = bytes_ + bytes > most_bytes ? nullptr : static_cast<List*>(map_memory(bytes));
      end_ = spare_ == nullptr ? nullptr : spare_ + 64;
      if (spare_ == nullptr) return nullptr;
      bytes_ += bytes;
    }
    return spare_++;
  }

 private:
  List *spare_ = nullptr, *end_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace commlens
