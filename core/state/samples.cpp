// SPDX-License-Identifier: Apache-2.0
#include "core/state/samples.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>

#include "core/base/locks.h"
#include "core/hot/messages.h"
#include "core/hot/thread.h"
#include "core/state/registry.h"
#include "core/state/sample_store.h"

namespace commlens {

HandleMap strata;

namespace {

constexpr std::int32_t never = 0x7fffffff;   // value of Stratum::skips that postpones the next check by 2^31 calls
constexpr std::uint32_t highest_level = 30;  // so that the distance between two samples fits into `skips`
// A quarter of the memory is for strata, so that new ones find room when the samples of others have used up the rest.
constexpr std::uint64_t most_strata_bytes = most_sample_bytes / 4;
constexpr std::uint64_t most_chunk_bytes = most_sample_bytes - most_strata_bytes;

std::mutex& mutex = locks::samples;
bool is_sampling = true;
bool is_all = false;  // all calls are sampled

// Guarded by the lock:
Stratum* all = nullptr;
ListStore<Stratum, most_strata_bytes> strata_store;
SampleStore<SampleChunk, arena::Kind::samples> store{most_chunk_bytes};
std::uint32_t limit = most_samples;  // of samples per stratum

// The communicators with a barrier before each collective.
std::set<std::uint32_t>& behind_barriers() {
  static auto* const comms = new std::set<std::uint32_t>();  // never destroyed
  return *comms;
}

void keep_at_most(Stratum& stratum, std::uint32_t most) noexcept {
  while (stratum.kept > most && stratum.level < highest_level) {
    store.raise_level(stratum, [&](const Sample& s) { return is_chosen(stratum.seed, stratum.level, s.number); });
  }
}

// Makes room for one more chunk.  Returns false if there is none even after all strata have given up what they can.
bool make_room() noexcept {
  while (!store.has_room()) {
    if (limit == fewest_samples) return false;
    limit = std::max(limit / 2, fewest_samples);
    for (Stratum* s = all; s != nullptr; s = s->before) keep_at_most(*s, limit);
  }
  return true;
}

void append(Stratum& stratum, const Sample& sample) noexcept {
  if (store.needs_chunk(stratum) && !make_room()) return;
  // Making room may have raised the level.
  if (is_chosen(stratum.seed, stratum.level, sample.number)) store.append(stratum, sample);
}

// Determines the next call to sample, after `next`.
void advance(Stratum& stratum) noexcept {
  const std::uint64_t block = stratum.next >> stratum.level;
  std::uint64_t following = chosen_call(stratum.seed, stratum.level, block);
  if (following <= stratum.next) following = chosen_call(stratum.seed, stratum.level, block + 1);
  stratum.skips = static_cast<std::int32_t>(following - stratum.next - 1);
  stratum.next = following;
}

}  // namespace

void choose_sampling(const std::string& waiting) noexcept {
  is_sampling = waiting != "0";
  is_all = waiting == "barrier";
  limit = is_all ? ~std::uint32_t{0} : most_samples;
  store.limit(is_all ? ~std::uint64_t{0} : most_chunk_bytes);
}
bool is_sampling_on() noexcept { return is_sampling; }
bool are_all_sampled() noexcept { return is_all; }

void note_barriers(std::uint32_t comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  behind_barriers().insert(comm);
}

bool begin_sampling(const CommRecord& record) {
  if (!is_sampling || record.kind != CommKind::intra || record.view.size < 2) return false;
  if (is_all) return true;
  constexpr std::uint32_t always_sampled = 64;
  static auto* const made = new std::unordered_map<std::uint64_t, std::uint32_t>();  // never destroyed
  const std::uint32_t n = (*made)[combine(record.op, record.site)]++;
  std::uint32_t level = 0;
  while (n >> level >= always_sampled) ++level;
  return (mixed(record.identity) & ((std::uint64_t{1} << level) - 1)) == 0;
}

Stratum* add_stratum(Key key, Identity comm, Stratum& unsampled) noexcept {
  Stratum* stratum = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stratum = static_cast<Stratum*>(strata.find(key));
    if (stratum != nullptr) return stratum;
    stratum = strata_store.take();
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
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const_cast<CommView&>(comm).is_sampled = false;
    for (Stratum* s = all; s != nullptr; s = s->before) {
      if (s->key != 0 && comm_of_key(s->key) == comm.index) s->key = 0;
    }
  }
  stop_operations(comm.index);  // uncached calls find is_sampled, and have no numbers any more
}

void stop_stratum(Stratum& stratum) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  stratum.key = 0;
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
    if (is_all && behind_barriers().count(comm_of_key(stratum.key)) != 0) flags |= SampleFlag::barrier;
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
  for (Stratum* s = all; s != nullptr; s = s->before) store.clear(*s);
}

}  // namespace commlens
