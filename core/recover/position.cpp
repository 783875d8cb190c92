// SPDX-License-Identifier: Apache-2.0
// The threads of a process: which ones are counted apart, where they were, and the time of the calls that they were in.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/hot/paths.h"
#include "core/hot/thread.h"
#include "core/recover/read.h"
#include "core/recover/segments.h"
#include "core/state/sums.h"
#include "generated/procedures.h"

namespace commlens::arena {

// Finds the threads that have not cleared their counters since the program asked for it, because they have not called
// MPI since.
void Reader::find_uncleared(const Segments& segments, std::uint32_t clears) {
  segments.each(Kind::thread, [&](const Segments::Segment& s) {
    const bool has_room = s.head->bytes >= sizeof(Thread);
    if (has_room && copy_of<std::uint32_t>(segments.content(s) + offsetof(Thread, clears)) != clears)
      uncleared_.insert(s.head->number);
  });
}

// Finds the threads that are counted apart (COMMLENS_THREADS=each), before their cells are read.
void Reader::take_owners(const Segments& segments) {
  segments.each(Kind::thread, [&](const Segments::Segment& s) {
    if (s.head->bytes < sizeof(Thread) || owners_.count(s.head->number) != 0) return;  // take_threads() reports it
    const auto owner = copy_of<ThreadOwner>(segments.content(s) + offsetof(Thread, owner));
    if (owner.kind > ThreadOwner::others) {
      is_damaged_ = true;
      return;
    }
    CountedThread* const thread = add_thread(counted_.threads, s.head->number, owner);
    if (thread != nullptr) owners_[s.head->number] = thread;
  });
}

// Returns the entry of a thread; null if threads are not counted apart.  The entry of a thread may be lost, but not its
// cells.
CountedThread* Reader::thread_of(std::uint32_t number) {
  if (owners_.empty()) return nullptr;
  const auto found = owners_.find(number);
  return found != owners_.end() ? found->second : &counted_.threads[other_threads];
}

// Converts to counted time, which does not advance during a pause.  For times before the end of the last pause, returns
// the counted time at its begin, as counted_time() does.
Ticks Reader::counted_until(Ticks t) const {
  return is_paused(pause_changes_) || t < held_ + paused_before_ ? held_ : t - paused_before_;
}

// A call site has an entry when a call from there has returned.  Else returns the newest known module with this
// address.
SiteFacts Reader::place_of(Site site) const {
  const auto found = sites_.find(site);
  if (found != sites_.end()) return found->second;
  if (is_path(site)) return {};
  const auto is_there = [site](const journal::ModuleEntry& m) { return m.begin <= site && site < m.end; };
  const auto module = std::find_if(modules_.rbegin(), modules_.rend(), is_there);
  if (module == modules_.rend()) return {"", "", site};
  return {module->facts.module, module->facts.build_id, module->facts.offset + (site - module->begin)};
}

// Returns the time that take_open_call() counted.
Ticks Reader::take_position(std::uint32_t number, const Thread& thread, std::uint32_t region) {
  const auto current = copy_of<CurrentCall>(&thread.current);
  if (current.since == 0) return 0;  // not a single call
  Position position;
  position.region = region;
  position.thread = static_cast<int>(number);
  position.inside = copy_of<char*>(&thread.outermost) != nullptr;
  if (current.since >= beyond_all || current.op >= std::size(op_facts)) {
    is_damaged_ = true;
    return 0;
  }
  position.op = current.op;
  position.site = without_datatypes(current.site);
  position.since = current.since;
  if (current.comm_by == CurrentCall::index) {
    position.comm = static_cast<std::uint32_t>(current.comm);
  } else if (current.comm_by == CurrentCall::handle) {
    const auto found = handles_.find(current.comm);
    position.comm = found == handles_.end() ? 0 : found->second;
  }
  if (!is_comm(position.comm)) position.comm = 0;
  position.partners = partners_of(current, job_.constants);
  counted_.positions.push_back(position);
  return position.inside ? take_open_call(number, thread, position) : 0;
}

// Counts the time of a call that did not return, from its begin to the last sign of life of its process.  A rank that
// waits in MPI would otherwise seem to compute.  The call itself is not counted, because its bytes are not known: its
// time is in a cell of no bytes, which has no calls if no call without bytes returned.
//
// Does not use signs of life of other ranks: they do not show how long this one lived.
Ticks Reader::take_open_call(std::uint32_t number, const Thread& thread, const Position& position) {
  const std::uint32_t region = copy_of<std::uint32_t>(&thread.counting_region);
  const bool has_ended = *reinterpret_cast<const unsigned char*>(&thread.has_ended) != 0;
  const bool is_begin_known = *reinterpret_cast<const unsigned char*>(&thread.current.is_untimed) == 0;
  if (region == uncounted_region || has_ended || position.op == op::unknown || !is_begin_known) return 0;
  const Ticks begin = std::max(counted_until(position.since), forgotten_), end = counted_until(last_seen_);
  const Key key = known(make_key(position.comm, position.op, 0, region & max_region));
  if (key == 0 || end <= begin || end - begin >= beyond_all) return 0;
  Cell open{};
  open.key = key;
  open.site = position.site;
  open.time = end - begin;
  CountedThread* const own = thread_of(number);
  add_cell_to(counted_, own, open);
  const auto extend = [&open](Cells& cells) {
    CountedCell& sum = cells[{open.key, open.site}];
    sum.time_max = std::max(sum.time_max, open.time);
  };
  extend(counted_.cells);
  if (own != nullptr) extend(own->cells);
  open_calls_.push_back({number, position.since, key, position.site, open.time});
  return open.time;
}

}  // namespace commlens::arena
