// SPDX-License-Identifier: Apache-2.0
#include "core/cold/registry.h"

#include <new>

#include "core/cold/say.h"

namespace commlens {

Registry::Registry() {
  records_.emplace_back();
  none_ = &records_.back().view;
  CommRecord any;
  any.kind = CommKind::set;
  any_set_ = &add(std::move(any), false);
}

const CommView& Registry::add(CommRecord record, bool counts) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (records_.size() > max_comm) return *none_;
  record.view.index = static_cast<std::uint32_t>(records_.size());
  if (counts) record.count = ++count_;
  record.created = now();
  records_.push_back(std::move(record));
  return records_.back().view;
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
  records_[index].freed = now();
}

void Registry::name(std::uint32_t index, const char* user_name) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (index != 0) records_[index].user_name = user_name;
} catch (const std::bad_alloc&) {
  say("no memory for the name of a communicator");
}

Identity Registry::identity(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_[index].identity;
}

int Registry::leader(std::uint32_t index) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_[index].leader;
}

const CommView& Registry::set_of(const std::uint32_t* sorted, std::size_t n) noexcept {
  // HandleMap keeps 0 and `gone` for itself.
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
