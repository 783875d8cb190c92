// SPDX-License-Identifier: Apache-2.0
#include "core/state/samples.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "core/arena/arena.h"
#include "core/base/locks.h"
#include "core/base/memory.h"
#include "core/hot/thread.h"
#include "core/state/registry.h"

namespace commlens {

HandleMap strata;

namespace {

constexpr std::int32_t never = 0x7fffffff;   // of Stratum::skips: 2^31 calls later it is asked again
constexpr std::uint32_t highest_level = 30;  // so that the distance between two samples fits into `skips`
constexpr std::size_t chunks_at_once = 16, strata_at_once = 64;
// A quarter of the memory is for strata, so that new ones find room when the samples of others have used up the rest.
constexpr std::uint64_t most_strata_bytes = most_sample_bytes / 4;
constexpr std::uint64_t most_chunk_bytes = most_sample_bytes - most_strata_bytes;

std::mutex& mutex = locks::samples;
bool is_sampling = true;

// Guarded by the lock:
Stratum* all = nullptr;
Stratum *spare = nullptr, *spare_end = nullptr;
SampleChunk* free_chunks = nullptr;
std::uint64_t chunk_bytes = 0, strata_bytes = 0;
std::uint32_t limit = most_samples;  // of samples per stratum

void set_count(SampleChunk& chunk, std::uint32_t count) noexcept {
  __atomic_store_n(&chunk.count, count, __ATOMIC_RELEASE);
}

void free_chunk(SampleChunk* chunk) noexcept {
  set_count(*chunk, 0);
  chunk->key = 0;
  chunk->next = free_chunks;
  free_chunks = chunk;
}

// Takes more chunks from the arena, within the limit.
bool add_chunks() noexcept {
  constexpr std::size_t bytes = chunks_at_once * sizeof(SampleChunk);
  if (chunk_bytes + bytes > most_chunk_bytes) return false;
  auto* const chunks = static_cast<SampleChunk*>(arena::allocate(arena::Kind::samples, bytes));
  if (chunks == nullptr) return false;
  chunk_bytes += bytes;
  for (std::size_t i = chunks_at_once; i-- > 0;) free_chunk(&chunks[i]);
  return true;
}

// Keeps only the samples of the next level: about half of them.  A process that is killed meanwhile leaves some samples
// twice, which the reader of the arena recognises.
void raise_level(Stratum& stratum) noexcept {
  ++stratum.level;
  SampleChunk* to = stratum.first;
  std::uint32_t at = 0;
  stratum.kept = 0;
  for (SampleChunk* from = stratum.first; from != nullptr; from = from->next) {
    const std::uint32_t n = from->count;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!is_chosen(stratum.seed, stratum.level, from->sample[i].number)) continue;
      if (at == SampleChunk::capacity) {
        set_count(*to, at);
        to = to->next;
        at = 0;
      }
      to->sample[at++] = from->sample[i];
      ++stratum.kept;
    }
  }
  if (to == nullptr) return;
  set_count(*to, at);
  while (to->next != nullptr) {
    SampleChunk* const rest = to->next;
    to->next = rest->next;
    free_chunk(rest);
  }
  stratum.last = to;
  for (SampleChunk* c = stratum.first; c != nullptr; c = c->next) c->level = stratum.level;
}

void keep_at_most(Stratum& stratum, std::uint32_t most) noexcept {
  while (stratum.kept > most && stratum.level < highest_level) raise_level(stratum);
}

// Returns a free chunk; null if there is none even after all strata have given up what they can.
SampleChunk* new_chunk() noexcept {
  while (free_chunks == nullptr && !add_chunks()) {
    if (limit == fewest_samples) return nullptr;
    limit = std::max(limit / 2, fewest_samples);
    for (Stratum* s = all; s != nullptr; s = s->before) keep_at_most(*s, limit);
  }
  SampleChunk* const chunk = free_chunks;
  free_chunks = chunk->next;
  return chunk;
}

void append(Stratum& stratum, const Sample& sample) noexcept {
  SampleChunk* last = stratum.last;
  if (last == nullptr || last->count == SampleChunk::capacity) {
    SampleChunk* const chunk = new_chunk();
    if (chunk == nullptr || !is_chosen(stratum.seed, stratum.level, sample.number)) {
      if (chunk != nullptr) free_chunk(chunk);
      return;
    }
    last = stratum.last;  // new_chunk() may have removed some
    chunk->next = nullptr;
    chunk->level = stratum.level;
    chunk->key = stratum.key;
    (last == nullptr ? stratum.first : last->next) = chunk;
    stratum.last = last = chunk;
  }
  const std::uint32_t n = last->count;
  last->sample[n] = sample;
  set_count(*last, n + 1);
  ++stratum.kept;
}

// Determines the next call to sample, after `next`.
void advance(Stratum& stratum) noexcept {
  const std::uint64_t block = stratum.next >> stratum.level;
  std::uint64_t following = chosen_call(stratum.seed, stratum.level, block);
  if (following <= stratum.next) following = chosen_call(stratum.seed, stratum.level, block + 1);
  stratum.skips = static_cast<std::int32_t>(following - stratum.next - 1);
  stratum.next = following;
}

Stratum* new_stratum() noexcept {
  if (spare == spare_end) {
    constexpr std::size_t bytes = strata_at_once * sizeof(Stratum);
    spare = strata_bytes + bytes > most_strata_bytes ? nullptr : static_cast<Stratum*>(map_memory(bytes));
    spare_end = spare == nullptr ? nullptr : spare + strata_at_once;
    if (spare == nullptr) return nullptr;
    strata_bytes += bytes;
  }
  return spare++;
}

}  // namespace

void choose_sampling(bool is_on) noexcept { is_sampling = is_on; }

bool begin_sampling(const CommRecord& record) {
  if (!is_sampling || record.kind != CommKind::intra || record.view.size < 2) return false;
  constexpr std::uint32_t all_of = 64;
  static auto* const made = new std::unordered_map<std::uint64_t, std::uint32_t>();  // never destroyed
  const std::uint32_t n = (*made)[combine(record.op, record.site)]++;
  std::uint32_t level = 0;
  while (n >> level >= all_of) ++level;
  return (mixed(record.identity) & ((std::uint64_t{1} << level) - 1)) == 0;
}

Stratum* add_stratum(Key key, Identity comm, Stratum& unsampled) noexcept {
  Stratum* stratum = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stratum = static_cast<Stratum*>(strata.find(key));
    if (stratum != nullptr) return stratum;
    stratum = new_stratum();
    if (stratum == nullptr) return &unsampled;
    stratum->key = key;
    stratum->seed = seed_of(comm, key);
    stratum->before = all;
    all = stratum;
    if (!strata.put(key, stratum)) stratum->key = 0;
  }
  return stratum;
}

void stop_sampling(const CommView& comm) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const_cast<CommView&>(comm).is_sampled = false;
  for (Stratum* s = all; s != nullptr; s = s->before) {
    if (s->key != 0 && comm_of_key(s->key) == comm.index) s->key = 0;
  }
}

void take_sample(Thread& thread, Stratum& stratum, Ticks left, std::uint32_t flags, bool is_valid) noexcept {
  if (&stratum == &thread.call_cache->unsampled) {
    stratum.skips = never;
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  if (stratum.key == 0) {
    stratum.skips = never;
    return;
  }
  const std::uint32_t region = thread.region();
  if (is_valid && region != uncounted_region) {
    if (stratum.kept >= limit) keep_at_most(stratum, limit - 1);
    if (is_chosen(stratum.seed, stratum.level, stratum.next)) {
      append(stratum, {stratum.next, thread.current.since, left, thread.mpi, region, flags});
    }
  }
  advance(stratum);
}

void thin_out(StratumSamples& stratum, Identity comm, std::uint32_t most) {
  const Identity seed = seed_of(comm, stratum.key);
  while (stratum.samples.size() > most && stratum.level < highest_level) {
    ++stratum.level;
    const auto is_out = [&](const Sample& s) { return !is_chosen(seed, stratum.level, s.number); };
    stratum.samples.erase(std::remove_if(stratum.samples.begin(), stratum.samples.end(), is_out),
                          stratum.samples.end());
  }
}

std::vector<StratumSamples> samples_here() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<StratumSamples> samples;
  for (const Stratum* s = all; s != nullptr; s = s->before) {
    if (s->key == 0 || s->kept == 0) continue;
    StratumSamples of_stratum{s->key, s->level, {}};
    for (const SampleChunk* c = s->first; c != nullptr; c = c->next) {
      of_stratum.samples.insert(of_stratum.samples.end(), c->sample, c->sample + c->count);
    }
    samples.push_back(std::move(of_stratum));
  }
  return samples;
}

void forget_samples() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Stratum* s = all; s != nullptr; s = s->before) {
    while (s->first != nullptr) {
      SampleChunk* const next = s->first->next;
      free_chunk(s->first);
      s->first = next;
    }
    s->last = nullptr;
    s->kept = 0;
  }
}

}  // namespace commlens
