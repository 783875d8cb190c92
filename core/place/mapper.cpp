// SPDX-License-Identifier: Apache-2.0
#include "core/place/mapper.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "core/place/role_graph.h"

namespace commlens {
namespace {

using Slot = std::uint32_t;

constexpr std::size_t most_by_trying_all = 8;
constexpr std::size_t starts = 32;
constexpr std::size_t most_groups_tried = 4;

// The slots, with the groups of one slot beside each other.  Levels that have one group only are left out.
class Places {
 public:
  explicit Places(const SlotTree& tree) : count_(tree.groups.empty() ? 0 : tree.groups[0].size()) {
    std::vector<std::size_t> kept;
    distances_.push_back(tree.distances[0]);
    for (std::size_t level = 0; level < tree.groups.size(); ++level) {
      const std::vector<std::uint32_t>& of = tree.groups[level];
      const bool is_one = std::all_of(of.begin(), of.end(), [&](std::uint32_t g) { return g == of[0]; });
      if (is_one && kept.empty()) {
        distances_[0] = tree.distances[level + 1];
      } else {
        kept.push_back(level);
        distances_.push_back(tree.distances[level + 1]);
      }
    }
    levels_ = kept.size();
    groups_.resize(count_ * levels_);
    for (std::size_t level = 0; level < levels_; ++level) {
      for (std::size_t slot = 0; slot < count_; ++slot)
        groups_[slot * levels_ + level] = tree.groups[kept[level]][slot];
    }
  }
  std::size_t count() const noexcept { return count_; }
  std::size_t levels() const noexcept { return levels_; }
  std::uint32_t group(Slot slot, std::size_t level) const noexcept { return groups_[slot * levels_ + level]; }
  unsigned distance(Slot a, Slot b) const noexcept {
    std::size_t shared = 0;
    while (shared < levels_ && group(a, shared) == group(b, shared)) ++shared;
    return distances_[shared];
  }
  bool are_alike(Slot a, Slot b) const noexcept {
    return levels_ == 0 || group(a, levels_ - 1) == group(b, levels_ - 1);
  }

  // Returns the sum of the distances from each slot to all others.
  std::vector<double> reaches() const {
    std::vector<double> sums(count_, static_cast<double>(distances_[0]) * static_cast<double>(count_ - 1));
    for (std::size_t level = 0; level < levels_; ++level) {
      std::uint32_t last = 0;
      for (Slot s = 0; s < count_; ++s) last = std::max(last, group(s, level));
      std::vector<std::uint32_t> sizes(std::size_t{last} + 1);
      for (Slot s = 0; s < count_; ++s) ++sizes[group(s, level)];
      const double saved = static_cast<double>(distances_[level]) - static_cast<double>(distances_[level + 1]);
      for (Slot s = 0; s < count_; ++s) sums[s] -= saved * (sizes[group(s, level)] - 1.0);
    }
    return sums;
  }

 private:
  std::size_t count_, levels_ = 0;
  std::vector<unsigned> distances_;
  std::vector<std::uint32_t> groups_;
};

// Which role is on which slot.
class Order {
 public:
  Order(const RoleGraph& graph, const Places& places)
      : graph_(&graph), places_(&places), slot_of_(places.count()), role_on_(places.count()) {
    std::iota(slot_of_.begin(), slot_of_.end(), 0);
    std::iota(role_on_.begin(), role_on_.end(), 0);
  }
  Slot slot_of(Role role) const noexcept { return slot_of_[role]; }
  Role role_on(Slot slot) const noexcept { return role_on_[slot]; }
  const std::vector<Slot>& slots() const noexcept { return slot_of_; }
  void put(Role role, Slot slot) noexcept {
    slot_of_[role] = slot;
    role_on_[slot] = role;
  }
  void swap(Role a, Role b) noexcept {
    const Slot of_a = slot_of_[a];
    put(a, slot_of_[b]);
    put(b, of_a);
  }
  double cost() const noexcept {
    double sum = 0;
    for (Role a = 0; a < slot_of_.size(); ++a) {
      for (const Edge& e : graph_->edges(a)) {
        if (e.to > a) sum += e.bytes * places_->distance(slot_of_[a], slot_of_[e.to]);
      }
    }
    return sum;
  }
  // Returns what a swap adds to the cost.
  double added_by_swap(Role a, Role b) const noexcept { return added_by_move(a, b) + added_by_move(b, a); }

 private:
  double added_by_move(Role role, Role leaving) const noexcept {
    const Slot from = slot_of_[role], to = slot_of_[leaving];
    double sum = 0;
    for (const Edge& e : graph_->edges(role)) {
      if (e.to == leaving) continue;  // they stay as far apart as before
      const Slot there = slot_of_[e.to];
      sum += e.bytes *
             (static_cast<double>(places_->distance(to, there)) - static_cast<double>(places_->distance(from, there)));
    }
    return sum;
  }
  const RoleGraph* graph_;
  const Places* places_;
  std::vector<Slot> slot_of_;
  std::vector<Role> role_on_;
};

// ---- few processes: all orders ----

class AllOrders {
 public:
  AllOrders(const RoleGraph& graph, const Places& places)
      : graph_(graph), places_(places), best_(graph, places), least_(best_.cost()), slot_of_(places.count()) {}
  Order best() {
    place(0, 0);
    return best_;
  }

 private:
  // Roles before `role` have their slots, which costs `cost`.
  void place(Role role, double cost) {
    if (cost >= least_) return;
    const std::size_t count = slot_of_.size();
    if (role == count) {
      least_ = cost;
      for (Role r = 0; r < count; ++r) best_.put(r, slot_of_[r]);
      return;
    }
    std::vector<Slot> tried;
    for (Slot i = 0; i < count; ++i) {
      const Slot slot = i == 0 ? role : i <= role ? i - 1 : i;  // its present slot first: it stays where it may
      const bool is_like_one_before =
          std::any_of(tried.begin(), tried.end(), [&](Slot t) { return places_.are_alike(t, slot); });
      if ((taken_ >> slot & 1) != 0 || is_like_one_before) continue;
      tried.push_back(slot);
      double more = 0;
      for (const Edge& e : graph_.edges(role)) {
        if (e.to < role) more += e.bytes * places_.distance(slot, slot_of_[e.to]);
      }
      slot_of_[role] = slot;
      taken_ ^= 1u << slot;
      place(role + 1, cost + more);
      taken_ ^= 1u << slot;
    }
  }
  const RoleGraph& graph_;
  const Places& places_;
  Order best_;
  double least_;
  std::vector<Slot> slot_of_;
  unsigned taken_ = 0;
};

// ---- many processes: groups that grow, then swaps ----

// Divides roles into parts of given sizes.  A part grows by the role that adds least to what leaves it.
class Growing {
 public:
  explicit Growing(const RoleGraph& graph) : graph_(graph), inside_(graph.size()), left_(graph.size()) {}

  // seed: which of the roles the first part begins with
  std::vector<std::vector<Role>> parts(const std::vector<Role>& roles, const std::vector<std::size_t>& sizes,
                                       std::size_t seed) {
    for (const Role r : roles) is_free(r) = true;
    for (const Role r : roles) {
      left_[r].bytes = 0;
      for (const Edge& e : graph_.edges(r)) {
        if (left_[e.to].is_free) left_[r].bytes += e.bytes;
      }
    }
    std::vector<std::vector<Role>> all;
    next_ = 0;
    Role first = seed == 0 ? least_connected(roles) : roles[seed];
    for (const std::size_t size : sizes) {
      all.push_back(grown(roles, first, size));
      first = next_seed(roles);
    }
    return all;
  }

 private:
  struct Left {
    double bytes = 0;  // between it and roles that are in no part yet
    bool is_free = false;
  };
  using Candidate = std::pair<double, Role>;  // what it saves; ~role, so that the lowest is taken among equals

  bool& is_free(Role r) { return left_[r].is_free; }
  Role least_connected(const std::vector<Role>& roles) const {
    return *std::min_element(roles.begin(), roles.end(),
                             [&](Role a, Role b) { return left_[a].bytes < left_[b].bytes; });
  }
  // The next part begins beside the last one, with the role that has least to do with the rest: no role is left over
  // between parts.
  Role next_seed(const std::vector<Role>& roles) {
    Role best = ~Role{0};
    while (!candidates_.empty()) {
      const Role r = ~candidates_.top().second;
      candidates_.pop();
      if (is_free(r) && (best == ~Role{0} || left_[r].bytes < left_[best].bytes)) best = r;
    }
    if (best != ~Role{0}) return best;
    while (next_ < roles.size() && !is_free(roles[next_])) ++next_;
    return next_ < roles.size() ? roles[next_] : 0;
  }
  std::vector<Role> grown(const std::vector<Role>& roles, Role first, std::size_t size) {
    std::vector<Role> part, touched;
    Role r = first;
    while (true) {
      part.push_back(r);
      is_free(r) = false;
      for (const Edge& e : graph_.edges(r)) {
        Left& other = left_[e.to];
        if (!other.is_free) continue;
        other.bytes -= e.bytes;
        if (inside_[e.to] == 0) touched.push_back(e.to);
        inside_[e.to] += e.bytes;
        candidates_.emplace(inside_[e.to] - other.bytes, ~e.to);
      }
      if (part.size() == size) break;
      r = best_candidate(roles);
    }
    for (const Role t : touched) inside_[t] = 0;
    return part;
  }
  Role best_candidate(const std::vector<Role>& roles) {
    while (!candidates_.empty()) {
      const auto [saved, mark] = candidates_.top();
      const Role r = ~mark;
      if (is_free(r) && saved == inside_[r] - left_[r].bytes) return r;
      candidates_.pop();
    }
    return next_seed(roles);
  }
  const RoleGraph& graph_;
  std::vector<double> inside_;  // bytes between a role and the part that grows
  std::vector<Left> left_;
  std::priority_queue<Candidate> candidates_;
  std::size_t next_ = 0;
};

// Fills the tree of slots from its root.
class Filling {
 public:
  Filling(const RoleGraph& graph, const Places& places, Order& order)
      : places_(places), order_(order), growing_(graph) {}

  void fill(const std::vector<Role>& roles, const std::vector<Slot>& slots, std::size_t level, std::size_t seed) {
    if (level == places_.levels()) return put(roles, slots);
    std::vector<std::vector<Slot>> groups = groups_of(slots, level);
    if (groups.size() == 1) return fill(roles, slots, level + 1, seed);
    std::vector<std::size_t> sizes;
    sizes.reserve(groups.size());
    for (const std::vector<Slot>& g : groups) sizes.push_back(g.size());
    std::vector<std::vector<Role>> parts = growing_.parts(roles, sizes, seed);
    leave_where_they_are(parts, groups, level);
    for (std::size_t i = 0; i < groups.size(); ++i) fill(parts[i], groups[i], level + 1, 0);
  }

 private:
  // Returns the groups at a level, the largest first.
  std::vector<std::vector<Slot>> groups_of(std::vector<Slot> slots, std::size_t level) const {
    std::stable_sort(slots.begin(), slots.end(),
                     [&](Slot a, Slot b) { return places_.group(a, level) < places_.group(b, level); });
    std::vector<std::vector<Slot>> groups;
    for (const Slot s : slots) {
      if (groups.empty() || places_.group(groups.back()[0], level) != places_.group(s, level)) groups.emplace_back();
      groups.back().push_back(s);
    }
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return groups;
  }
  // Among groups of equal size, gives each part the group where most of its roles are: less data has to move.
  void leave_where_they_are(std::vector<std::vector<Role>>& parts, const std::vector<std::vector<Slot>>& groups,
                            std::size_t level) const {
    struct Overlap {
      std::size_t roles, part, group;
    };
    std::vector<Overlap> overlaps;
    std::vector<std::pair<std::uint32_t, std::size_t>> numbers;
    numbers.reserve(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) numbers.emplace_back(places_.group(groups[g][0], level), g);
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::size_t> counts(groups.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      std::vector<std::size_t> seen;
      for (const Role r : parts[p]) {
        const auto found =
            std::lower_bound(numbers.begin(), numbers.end(), std::pair(places_.group(r, level), std::size_t{0}));
        if (found == numbers.end() || found->first != places_.group(r, level)) continue;
        if (counts[found->second]++ == 0) seen.push_back(found->second);
      }
      for (const std::size_t g : seen) {
        if (parts[p].size() == groups[g].size()) overlaps.push_back({counts[g], p, g});
        counts[g] = 0;
      }
    }
    std::stable_sort(overlaps.begin(), overlaps.end(), [](const auto& a, const auto& b) { return a.roles > b.roles; });
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> part_of(groups.size(), none);
    std::vector<bool> has_group(parts.size());
    for (const Overlap& o : overlaps) {
      if (part_of[o.group] != none || has_group[o.part]) continue;
      part_of[o.group] = o.part;
      has_group[o.part] = true;
    }
    std::vector<std::vector<Role>> placed(groups.size());
    std::size_t next = 0;  // parts and groups of one size follow each other
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (part_of[g] == none) {
        while (has_group[next]) ++next;
        part_of[g] = next++;
      }
      placed[g] = std::move(parts[part_of[g]]);
    }
    parts = std::move(placed);
  }
  // A role that is on one of the slots stays there.
  void put(const std::vector<Role>& roles, const std::vector<Slot>& slots) {
    std::vector<Slot> open = slots;
    std::vector<Role> moving;
    std::sort(open.begin(), open.end());
    for (const Role r : roles) {
      const auto own = std::lower_bound(open.begin(), open.end(), r);
      if (own != open.end() && *own == r) {
        order_.put(r, r);
      } else {
        moving.push_back(r);
      }
    }
    std::sort(moving.begin(), moving.end());
    std::vector<Role> all = roles;
    std::sort(all.begin(), all.end());
    auto next = moving.begin();
    for (const Slot s : open) {
      if (!std::binary_search(all.begin(), all.end(), s)) order_.put(*next++, s);
    }
  }
  const Places& places_;
  Order& order_;
  Growing growing_;
};

// Swaps two roles as long as this saves something.
class Swapping {
 public:
  Swapping(const RoleGraph& graph, const Places& places) : graph_(graph), places_(places) {
    for (Slot s = 0; s < places.count(); ++s) {
      const std::uint32_t g = places.group(s, 0);
      if (g >= slots_in_.size()) slots_in_.resize(std::size_t{g} + 1);
      slots_in_[g].push_back(s);
    }
  }
  // effort: is reduced by the steps taken
  void improve(Order& order, std::uint64_t& effort) {
    for (bool has_changed = true; has_changed && effort != 0;) {
      has_changed = false;
      for (Role r = 0; r < graph_.size() && effort != 0; ++r) has_changed = improve(order, r, effort) || has_changed;
    }
  }

 private:
  bool improve(Order& order, Role role, std::uint64_t& effort) {
    Role best = role;
    double saved = 0;
    for (const std::uint32_t group : groups_to_try(order, role)) {
      for (const Slot s : slots_in_[group]) {
        const Role other = order.role_on(s);
        if (other == role) continue;
        const std::uint64_t steps = graph_.edges(role).size() + graph_.edges(other).size() + 1;
        if (steps > effort) {
          effort = 0;
          break;
        }
        effort -= steps;
        const double added = order.added_by_swap(role, other);
        if (added < saved) {
          saved = added;
          best = other;
        }
      }
    }
    if (best != role) order.swap(role, best);
    return best != role;
  }
  // Returns the groups of the first level where its partners are, the heaviest first.
  std::vector<std::uint32_t> groups_to_try(const Order& order, Role role) const {
    std::vector<std::pair<std::uint32_t, double>> pulls;
    const std::uint32_t own = places_.group(order.slot_of(role), 0);
    for (const Edge& e : graph_.edges(role)) {
      const std::uint32_t g = places_.group(order.slot_of(e.to), 0);
      if (g == own && places_.levels() == 1) continue;
      const auto known = std::find_if(pulls.begin(), pulls.end(), [g](const auto& p) { return p.first == g; });
      if (known != pulls.end()) {
        known->second += e.bytes;
      } else if (pulls.size() < 16 * most_groups_tried) {
        pulls.emplace_back(g, e.bytes);
      }
    }
    std::stable_sort(pulls.begin(), pulls.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    if (pulls.size() > most_groups_tried) pulls.resize(most_groups_tried);
    std::vector<std::uint32_t> found;
    found.reserve(pulls.size());
    for (const auto& pull : pulls) found.push_back(pull.first);
    return found;
  }
  const RoleGraph& graph_;
  const Places& places_;
  std::vector<std::vector<Slot>> slots_in_;
};

// Improves the present order, which leaves most roles where they are, and new ones.  Of equal ones, the present one
// wins.
Order searched(const RoleGraph& graph, const Places& places, std::uint64_t effort) {
  Swapping swapping(graph, places);
  std::vector<Role> all(places.count());
  std::iota(all.begin(), all.end(), 0);
  const auto filled = [&](std::size_t start, std::uint64_t share) {
    Order order(graph, places);
    Filling(graph, places, order).fill(all, all, 0, start * all.size() / starts);
    effort -= share;
    swapping.improve(order, share);
    effort += share;  // what it has left
    return order;
  };
  Order grown = filled(0, effort / 2);
  Order best(graph, places);
  std::uint64_t share = effort / 2;
  effort -= share;
  swapping.improve(best, share);
  effort += share;
  double least = best.cost();
  const auto take_if_better = [&](Order order) {
    const double cost = order.cost();
    if (cost >= least) return;
    least = cost;
    best = std::move(order);
  };
  take_if_better(std::move(grown));
  const std::uint64_t steps_to_fill = 4 * graph.edge_count() + all.size();
  for (std::size_t start = 1; start < starts && effort > steps_to_fill; ++start) {
    effort -= steps_to_fill;
    take_if_better(filled(start, effort));
  }
  return best;
}

}  // namespace

NewOrder better_order(const RoleTraffic& traffic, const SlotTree& tree, std::uint64_t effort) {
  const Places places(tree);
  const RoleGraph graph(places.count(), traffic.exchanges);
  NewOrder found;
  const Order present(graph, places);
  found.slot_of_role = present.slots();
  found.before = found.after = present.cost();
  const bool has_choice = places.levels() != 0 && graph.edge_count() != 0;
  const std::vector<double> reaches = places.reaches();
  for (Role r = 0; r < places.count(); ++r) found.before += static_cast<double>(traffic.to_all[r]) * reaches[r];
  found.after = found.before;
  if (!has_choice) return found;
  const Order best =
      places.count() <= most_by_trying_all ? AllOrders(graph, places).best() : searched(graph, places, effort);
  double after = best.cost();
  for (Role r = 0; r < places.count(); ++r) after += static_cast<double>(traffic.to_all[r]) * reaches[best.slot_of(r)];
  if (after >= found.before) return found;
  found.after = after;
  found.slot_of_role = best.slots();
  return found;
}

double gain_percent(const Balance& balance) noexcept {
  return balance.before > 0 ? 100 * (balance.before - balance.after) / balance.before : 0;
}

bool pays(const Balance& balance) noexcept {
  const double gain = gain_percent(balance);
  if (gain <= 0) return false;
  if (balance.min_percent == 0) return true;
  if (balance.communicating_s <= 0) return false;
  const double cost = 100 * balance.cost_s / balance.communicating_s;
  return gain - cost >= static_cast<double>(balance.min_percent);
}

}  // namespace commlens
