// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Gives the processes of a communicator another order, so that those that exchange much are near each other
// (docs/decisions/0035-reorder.md).  A role is a rank with what it sends; a slot is the place of a process.  Before,
// role r is on slot r.
namespace commlens {

// The slots as a tree.
struct SlotTree {
  // groups[level][slot]: nodes first, then their sockets, ...  Two slots of one group are in one group at all levels
  // before.
  std::vector<std::vector<std::uint32_t>> groups;
  // distances[k]: between two slots that share k levels.  It decreases.
  std::vector<unsigned> distances;
};

// What two roles have exchanged, in either direction.
struct Exchange {
  std::uint32_t one, other;
  std::uint64_t bytes;
};

struct RoleTraffic {
  std::vector<Exchange> exchanges;  // in any order; a pair may occur several times
  // Bytes that a role has sent to each other role: they cost almost the same in any order.
  std::vector<std::uint64_t> to_all;
};

struct NewOrder {
  std::vector<std::uint32_t> slot_of_role;
  double before = 0, after = 0;  // sum of bytes times distance
};

// Searches a better order.  The result is the same for the same arguments, and never worse than the present one.  Up to
// 8 processes it is the best.
//  effort: the largest number of steps, of some nanoseconds each, after a first order is found
NewOrder better_order(const RoleTraffic& traffic, const SlotTree& slots, std::uint64_t effort);

// The decision: what is gained against what it costs.
struct Balance {
  double before, after;       // as in NewOrder
  double cost_s;              // time of the search, and of making a communicator
  double communicating_s;     // time that a process has spent in communication while the traffic was counted
  unsigned long min_percent;  // COMMLENS_REORDER_MIN_GAIN
};

// Returns the gain in percent of the cost before.
double gain_percent(const Balance& balance) noexcept;

// Returns whether gain_percent() minus the cost reaches min_percent.  The cost is cost_s as a percentage of
// communicating_s.  If min_percent is 0, any gain is enough, whatever the cost.
bool pays(const Balance& balance) noexcept;

}  // namespace commlens
