// SPDX-License-Identifier: Apache-2.0
#include "core/state/traffic.h"

#include <atomic>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/hot/key.h"
#include "core/hot/regions.h"
#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

std::mutex mutex;
std::atomic<bool> has_marks{false};

struct Mark {
  std::uint32_t cleared;  // `clears` when it was set
  Traffic traffic;
};

// By the index of the communicator.
std::unordered_map<std::uint32_t, Mark>& marks() {
  static auto* const made = new std::unordered_map<std::uint32_t, Mark>;  // never destroyed
  return *made;
}

// Another thread may clear its counters later than commlens_reset() asks for it.
template <class Number>
Number since(Number now, Number mark) noexcept {
  return now >= mark ? now - mark : now;
}

bool communicates(std::uint32_t op) noexcept {
  const std::string_view klass = op < std::size(op_facts) ? op_facts[op].klass : "";
  for (const std::string_view one : {"p2p", "collective", "neighbor", "rma", "completion"}) {
    if (klass == one) return true;
  }
  return false;
}

Traffic traffic_so_far(const MemberRanks& members, bool are_inside_known) {
  Traffic sum;
  sum.bytes.resize(members.world.size());
  const auto add = [&](Flow flow) {
    const std::vector<std::uint64_t> more = counted_now({flow, Measure::bytes, Breadth::everywhere}, members);
    for (std::size_t i = 0; i < more.size(); ++i) sum.bytes[i] += more[i];
  };
  for (const Flow flow : {Flow::sent, Flow::put, Flow::get}) add(flow);
  if (are_inside_known) {
    for (const Flow flow : {Flow::collective, Flow::collective_send, Flow::collective_start}) add(flow);
  } else {
    add(Flow::share);
  }
  each_cell(this_thread().table, [&sum](const Cell& cell) {
    if (communicates(op_of_key(cell.key))) sum.communicating += cell.time;
  });
  return sum;
}

}  // namespace

Traffic traffic_since_mark(const MemberRanks& members, bool are_inside_known) {
  Traffic now = traffic_so_far(members, are_inside_known);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto mark = marks().find(members.comm);
  if (mark == marks().end() || mark->second.cleared != clears.load()) return now;
  const Traffic& then = mark->second.traffic;
  for (std::size_t i = 0; i < now.bytes.size(); ++i) now.bytes[i] = since(now.bytes[i], then.bytes[i]);
  now.communicating = since(now.communicating, then.communicating);
  return now;
}

void mark_traffic(const MemberRanks& members, bool are_inside_known) {
  const std::uint32_t cleared = clears.load();
  Traffic now = traffic_so_far(members, are_inside_known);
  has_marks.store(true);
  const std::lock_guard<std::mutex> lock(mutex);
  marks()[members.comm] = {cleared, std::move(now)};
}

void forget_mark(std::uint32_t comm) noexcept {
  if (!has_marks.load()) return;
  const std::lock_guard<std::mutex> lock(mutex);
  marks().erase(comm);
}

}  // namespace commlens
