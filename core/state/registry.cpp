// SPDX-License-Identifier: Apache-2.0
#include "core/state/registry.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/arena/arena.h"
#include "core/base/say.h"
#include "core/state/freed_comms.h"
#include "core/state/journal.h"
#include "core/state/samples.h"

namespace commlens {
namespace {

bool same(const CommView& a, const CommView& b) noexcept {
  return a.inter == b.inter && a.rank == b.rank && a.size == b.size && a.blocks == b.blocks && a.sources == b.sources &&
         a.destinations == b.destinations && a.source_slots == b.source_slots &&
         a.destination_slots == b.destination_slots && a.absent == b.absent;
}

}  // namespace

Registry::Registry() {
  records_.emplace_back();
  records_.back().state = new_state();
  publish(records_.back());
  none_ = &records_.back().view;
  CommRecord any;
  any.kind = CommKind::set;
  any_set_ = &add(std::move(any), false);
}

const CommView& Registry::add(CommRecord record, bool counts) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex_);
  record.view.is_sampled = begin_sampling(record);
  return insert(std::move(record), counts);
} catch (const std::bad_alloc&) {
  return *none_;
}

const CommView& Registry::insert(CommRecord record, bool counts) {
  if (records_.size() > max_comm) return *none_;
  record.view.index = static_cast<std::uint32_t>(records_.size());
  if (counts) record.count = ++count_;
  record.created = now();
  record.view.identity = record.identity;
  records_.push_back(std::move(record));
  records_.back().state = new_state();  // after push_back, which may throw: states must have the order of the records
  publish(records_.back());
  journal::note(records_.back());
  return records_.back().view;
}

void Registry::publish(const CommRecord& record) noexcept {
  arena::CommState* const state = record.state;
  if (state == nullptr) return;
  state->previous = newest_.load(std::memory_order_relaxed);
  state->index = record.view.index;
  state->leader = record.leader;
  state->count = record.count;
  state->letter = record.letter;
  state->is_set = record.kind == CommKind::set;
  if (state->is_set) {
    state->count = static_cast<std::uint32_t>(record.members.size());
    const std::size_t n = std::min<std::size_t>(record.members.size(), arena::CommState::most_members);
    std::copy_n(record.members.begin(), n, state->members);
  }
  state->identity.store(record.identity, std::memory_order_release);
  newest_.store(state, std::memory_order_release);
}

// Returns the state for the next record.  States have the order of the records: after a failed allocation there are no
// more.
arena::CommState* Registry::new_state() noexcept {
  constexpr int at_once = 64;
  if (states_left_ == 0 && !states_exhausted_) {
    states_ = static_cast<arena::CommState*>(arena::allocate(arena::Kind::comms, at_once * sizeof(arena::CommState)));
    states_exhausted_ = states_ == nullptr;
    states_left_ = at_once;
  }
  if (states_exhausted_) return nullptr;
  arena::CommState* const state = &states_[at_once - states_left_--];
  state->communicators.store(1, std::memory_order_relaxed);
  return state;
}

void Registry::handle(std::uint32_t index, std::uint64_t handle) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  arena::CommState* const state = records_[index].state;
  if (state != nullptr) state->handle.store(handle, std::memory_order_relaxed);
}

const CommView& Registry::add_sibling(CommRecord record) noexcept try {
  record.view.neighbors = nullptr;  // communicators that share a record may differ in it
  const std::lock_guard<std::mutex> lock(mutex_);
  std::uint32_t& index = siblings_[record.identity];
  if (index == 0) {
    const CommView& view = insert(std::move(record), true);
    index = view.index;
    if (index != 0) records_[index].views.push_back(&view);
    return view;
  }
  CommRecord& known = records_[index];
  ++count_;
  ++known.communicators;
  ++known.not_freed;
  known.freed = 0;
  if (known.state != nullptr) {
    known.state->communicators.store(known.communicators, std::memory_order_relaxed);
    known.state->freed.store(0, std::memory_order_relaxed);
  }
  record.view.index = index;
  for (const CommView* view : known.views) {
    if (same(*view, record.view)) return *view;
  }
  sibling_views_.push_back(record.view);
  known.views.push_back(&sibling_views_.back());
  return sibling_views_.back();
} catch (const std::bad_alloc&) {
  return *none_;
}

std::uint32_t Registry::next_on_parent(std::uint32_t parent) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_[parent].creations++;
}

std::uint32_t Registry::next_under(Identity key) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_[key]++;
} catch (const std::bad_alloc&) {
  return 0;
}

void Registry::freed(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  CommRecord& record = records_[index];
  if (record.not_freed > 0) --record.not_freed;
  if (record.not_freed != 0) return;
  const bool has_ended = record.freed == 0 && record.root == 0;
  record.freed = now();
  if (has_ended) comm_freed(index);
  if (record.state != nullptr) record.state->freed.store(record.freed, std::memory_order_relaxed);
}

void Registry::name(std::uint32_t index, const char* user_name) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (index == 0 || records_[index].communicators != 1) return;
  records_[index].user_name = user_name;
  arena::CommState* const state = records_[index].state;
  if (state != nullptr) std::strncpy(state->user_name, user_name, sizeof state->user_name - 1);
} catch (const std::bad_alloc&) {
  say("no memory for the name of a communicator");
}

Lineage Registry::lineage(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CommRecord& record = records_[index];
  return {record.identity, record.depth, record.root, record.kin};
}

int Registry::leader(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_[index].leader;
}

Identity Registry::sampled(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CommRecord& record = records_[index];
  return record.view.is_sampled ? record.identity : 0;
}

PeersOf Registry::peers_of(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CommRecord& record = records_[index];
  const bool is_one = record.communicators == 1 && record.freed == 0 && record.state != nullptr &&
                      (record.kind == CommKind::intra || record.kind == CommKind::inter);
  if (!is_one) return {0, false, false};
  return {record.state->handle.load(std::memory_order_relaxed), record.view.inter, true};
}

std::string Registry::topology(std::uint32_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_[index].topology;
}

const CommView& Registry::set_of(const std::uint32_t* sorted, std::size_t n) noexcept {
  // The key must not be 0 or HandleMap::gone, which HandleMap reserves.
  Identity key = n;
  for (std::size_t i = 0; i < n; ++i) key = combine(key, sorted[i]);
  key |= 1;
  const void* const known = sets_.find(key == HandleMap::gone ? 1 : key);
  if (known != nullptr) return *static_cast<const CommView*>(known);
  if (set_count_.load(std::memory_order_relaxed) >= max_sets) return *any_set_;
  set_count_.fetch_add(1, std::memory_order_relaxed);
  CommRecord record;
  record.kind = CommKind::set;
  try {
    record.members.assign(sorted, sorted + n);
  } catch (const std::bad_alloc&) {
    return *none_;
  }
  const CommView& view = add(std::move(record), false);
  sets_.put(key == HandleMap::gone ? 1 : key, const_cast<CommView*>(&view));
  return view;
}

}  // namespace commlens
