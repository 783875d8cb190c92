// SPDX-License-Identifier: Apache-2.0
#include "core/state/online.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "core/hot/regions.h"
#include "core/state/peers.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

std::mutex mutex;
std::optional<MemberRanks> (*members_of)(std::uint32_t) = nullptr;
std::atomic<bool> is_watched{false};  // set at the first read, for ever

// Members of the communicators that were read.  The members of a communicator never change.
std::unordered_map<std::uint32_t, MemberRanks>& known_members() {
  static auto* const made = new std::unordered_map<std::uint32_t, MemberRanks>;  // never destroyed
  return *made;
}

// Returns the members of a communicator, or null.  pre: the lock is held.
const MemberRanks* find_members(std::uint32_t comm) {
  const auto known = known_members().find(comm);
  if (known != known_members().end()) return &known->second;
  std::optional<MemberRanks> found = members_of == nullptr ? std::nullopt : members_of(comm);
  if (!found) return nullptr;
  return &known_members().emplace(comm, std::move(*found)).first->second;
}

bool is_shape(Flow flow) noexcept {
  return flow == Flow::one_to_all || flow == Flow::all_to_one || flow == Flow::all_to_all;
}

// Only their counts need the members of a communicator: others name the process.
bool has_shapes(std::uint32_t comm) {
  bool found = false;
  each_peer(
      [&](const PeerCell& cell) { found = found || (comm_of_peer(cell.key) == comm && is_shape(flow_of(cell.key))); });
  return found;
}

// For collectives with the same block size for all peers: calls visit(rank, messages, bytes) for each peer.
template <class Visit>
void each_share(const PeerCell& cell, const MemberRanks& members, Visit visit) {
  const auto size = static_cast<std::uint64_t>(members.world.size());
  const auto rank = static_cast<std::uint64_t>(members.rank);
  const Reach reach = op_facts[op_of_peer(cell.key)].reach;
  const bool is_inter = members.rank < 0;
  if (reach == Reach::all) {
    const std::uint64_t others = is_inter ? size : size - 1;
    for (std::uint64_t i = 0; i < size; ++i) {
      if (is_inter || i != rank) visit(i, cell.messages, cell.bytes / others);
    }
  } else if (reach == Reach::later) {
    for (std::uint64_t i = rank + 1; i < size; ++i) visit(i, cell.messages, cell.bytes / (size - rank));
  }
}

// A histogram of sizes takes the place of one value.
std::size_t number_of_values(const Selection& selection, std::size_t members) noexcept {
  return (selection.breadth == Breadth::whole ? 1 : members) * (selection.measure == Measure::sizes ? size_bins : 1);
}

std::vector<PeerCell> cells_of(const Selection& selection, const MemberRanks& members) {
  std::vector<PeerCell> found;
  each_peer([&](const PeerCell& cell) {
    const Flow flow = flow_of(cell.key);
    const bool is_asked = flow == selection.flow || (selection.flow == Flow::share && is_shape(flow));
    if (is_asked && (selection.breadth == Breadth::everywhere || comm_of_peer(cell.key) == members.comm))
      found.push_back(cell);
  });
  return found;
}

}  // namespace

void ask_for_members(std::optional<MemberRanks> (*ask)(std::uint32_t)) noexcept { members_of = ask; }

void remember_members(std::uint32_t comm) noexcept try {
  if (!is_watched.load(std::memory_order_relaxed) || !has_shapes(comm)) return;
  const std::lock_guard<std::mutex> lock(mutex);
  find_members(comm);
} catch (const std::bad_alloc&) {
  return;  // the shares of its collectives per process are then missing
}

std::vector<std::uint64_t> counted_now(const Selection& selection, const MemberRanks& members) {
  is_watched.store(true, std::memory_order_relaxed);
  const auto size = members.world.size();
  std::vector<std::uint64_t> values(number_of_values(selection, size));
  const auto add = [&](std::size_t at, std::uint64_t messages, std::uint64_t bytes) {
    if (at < values.size()) values[at] += selection.measure == Measure::bytes ? bytes : messages;
  };
  std::unordered_map<std::int32_t, std::size_t> rank_of;
  if (selection.breadth == Breadth::everywhere) {
    for (std::size_t i = 0; i < size; ++i) {
      if (members.world[i] >= 0) rank_of[members.world[i]] = i;
    }
  }
  // Adds to the value of the peer among the members.  A process of another world is only known by its rank in this
  // communicator.
  const auto add_for = [&](std::uint32_t comm, std::uint32_t peer, std::int32_t world, std::uint64_t messages,
                           std::uint64_t bytes) {
    if (comm == members.comm) return add(peer, messages, bytes);
    const auto found = world < 0 ? rank_of.end() : rank_of.find(world);
    if (found != rank_of.end()) add(found->second, messages, bytes);
  };
  const std::lock_guard<std::mutex> lock(mutex);
  for (const PeerCell& cell : cells_of(selection, members)) {
    const std::uint32_t comm = comm_of_peer(cell.key);
    if (selection.measure == Measure::sizes && selection.breadth == Breadth::whole) {
      add(bin_of_peer(cell.key), cell.messages, 0);
    } else if (selection.measure == Measure::sizes) {  // only in this communicator
      if (shift_of(cell.site) == 0) add(peer_of(cell.site) * size_bins + bin_of_peer(cell.key), cell.messages, 0);
    } else if (selection.breadth == Breadth::whole) {
      add(0, cell.messages, cell.bytes);
    } else if (selection.flow == Flow::share && is_shape(flow_of(cell.key))) {
      const MemberRanks* const theirs = comm == members.comm ? &members : find_members(comm);
      if (theirs == nullptr) continue;
      each_share(cell, *theirs, [&](std::uint64_t rank, std::uint64_t messages, std::uint64_t bytes) {
        add_for(comm, static_cast<std::uint32_t>(rank), theirs->world[rank], messages, bytes);
      });
    } else if (shift_of(cell.site) == 0) {
      add_for(comm, peer_of(cell.site), cell.world, cell.messages, cell.bytes);
    }
  }
  return values;
}

Watch::Watch(const Selection& selection, MemberRanks members)
    : selection_(selection),
      members_(std::move(members)),
      cleared_(clears.load()),
      begin_(counted_now(selection_, members_)),
      sum_(begin_.size()) {}

void Watch::start() {
  if (is_started_) return;
  cleared_ = clears.load();
  begin_ = counted_now(selection_, members_);
  is_started_ = true;
}

void Watch::stop() {
  sum_ = read();
  is_started_ = false;
}

void Watch::reset() { static_cast<void>(read_and_reset()); }

std::vector<std::uint64_t> Watch::sum_with(const std::vector<std::uint64_t>& now) const {
  std::vector<std::uint64_t> values = sum_;
  const bool are_cleared = cleared_ != clears.load();  // by commlens_reset()
  for (std::size_t i = 0; is_started_ && i < values.size(); ++i) {
    // Another thread may clear its counters later than asked for.
    values[i] += !are_cleared && now[i] >= begin_[i] ? now[i] - begin_[i] : now[i];
  }
  return values;
}

std::vector<std::uint64_t> Watch::read() const { return sum_with(counted_now(selection_, members_)); }

std::vector<std::uint64_t> Watch::read_and_reset() {
  const std::uint32_t cleared = clears.load();
  std::vector<std::uint64_t> now = counted_now(selection_, members_);
  std::vector<std::uint64_t> values = sum_with(now);
  cleared_ = cleared;
  sum_.assign(sum_.size(), 0);
  begin_ = std::move(now);
  return values;
}

// ---- performance variables ----

namespace {

constexpr std::string_view prefix = "commlens_";

using M = Measure;
using B = Breadth;
constexpr Variable table[] = {
    {"pml_monitoring_messages_count",
     {Flow::sent, M::messages, B::everywhere},
     true,
     "Messages that this process has sent to each member of the communicator, in any communicator."},
    {"pml_monitoring_messages_size",
     {Flow::sent, M::bytes, B::everywhere},
     true,
     "Bytes of the messages that this process has sent to each member of the communicator, in any communicator."},
    {"osc_monitoring_messages_sent_count",
     {Flow::put, M::messages, B::everywhere},
     true,
     "One-sided operations by which this process has written to each member of the communicator."},
    {"osc_monitoring_messages_sent_size",
     {Flow::put, M::bytes, B::everywhere},
     true,
     "Bytes that this process has written to each member of the communicator by one-sided operations."},
    {"osc_monitoring_messages_recv_count",
     {Flow::get, M::messages, B::everywhere},
     true,
     "One-sided operations by which this process has read from each member of the communicator."},
    {"osc_monitoring_messages_recv_size",
     {Flow::get, M::bytes, B::everywhere},
     true,
     "Bytes that this process has read from each member of the communicator by one-sided operations."},
    {"coll_monitoring_messages_count",
     {Flow::share, M::messages, B::everywhere},
     true,
     "Collectives in which this process has exchanged a block with each member of the communicator."},
    {"coll_monitoring_messages_size",
     {Flow::share, M::bytes, B::everywhere},
     true,
     "Bytes of the blocks that this process has exchanged in collectives with each member of the communicator."},
    {"coll_monitoring_o2a_count",
     {Flow::one_to_all, M::messages, B::whole},
     true,
     "Collectives on the communicator in which this process is the root and sends to all others."},
    {"coll_monitoring_o2a_size",
     {Flow::one_to_all, M::bytes, B::whole},
     true,
     "Bytes that this process sends to all others as the root of such collectives."},
    {"coll_monitoring_a2o_count",
     {Flow::all_to_one, M::messages, B::whole},
     true,
     "Collectives on the communicator in which this process is the root and receives from all others."},
    {"coll_monitoring_a2o_size",
     {Flow::all_to_one, M::bytes, B::whole},
     true,
     "Bytes that this process receives from all others as the root of such collectives."},
    {"coll_monitoring_a2a_count",
     {Flow::all_to_all, M::messages, B::whole},
     true,
     "Collectives on the communicator in which all processes send to all others."},
    {"coll_monitoring_a2a_size",
     {Flow::all_to_all, M::bytes, B::whole},
     true,
     "Bytes that this process sends to all others in such collectives."},
    {"commlens_comm_sent_count",
     {Flow::sent, M::messages, B::here},
     false,
     "Messages that this process has sent to each member of the communicator, in this communicator."},
    {"commlens_comm_sent_size",
     {Flow::sent, M::bytes, B::here},
     false,
     "Bytes of the messages that this process has sent to each member of the communicator, in this communicator."},
    {"commlens_comm_received_count",
     {Flow::received, M::messages, B::here},
     false,
     "Messages that this process has received from each member of the communicator, in this communicator."},
    {"commlens_comm_received_size",
     {Flow::received, M::bytes, B::here},
     false,
     "Bytes of the messages that this process has received from each member, in this communicator."},
    {"commlens_comm_sent_histogram",
     {Flow::sent, M::sizes, B::whole},
     false,
     "Messages that this process has sent in the communicator, by their size: of no byte, 1, 2 to 3, 4 to 7, ..."},
    {"commlens_comm_sent_histogram_by_peer",
     {Flow::sent, M::sizes, B::here},
     false,
     "The same for each member: 65 values for messages to the first one, 65 for those to the second one, ..."},
    {"commlens_comm_received_histogram_by_peer",
     {Flow::received, M::sizes, B::here},
     false,
     "Messages that this process has received in the communicator, by their size, in the same way for each member."},
};

}  // namespace

const std::vector<Variable>& variables() {
  static const auto* const all = new std::vector<Variable>(std::begin(table), std::end(table));
  return *all;
}

std::string name_of(const Variable& variable, bool library_has_it) {
  return std::string(variable.is_of_monitoring && library_has_it ? prefix : "") + variable.name;
}

int variable_of(std::string_view name) noexcept {
  const std::vector<Variable>& all = variables();
  const std::string_view bare = name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : name;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (name == all[i].name || (all[i].is_of_monitoring && bare == all[i].name)) return static_cast<int>(i);
  }
  return -1;
}

void PositionMap::fix(int theirs, int ours) noexcept {
  first_ = theirs;
  ours_ = ours;
}

PositionMap::Entry PositionMap::at(int position) const noexcept {
  if (position < first_) return {false, position};
  if (position < first_ + ours_) return {true, position - first_};
  return {false, position - ours_};
}

}  // namespace commlens
