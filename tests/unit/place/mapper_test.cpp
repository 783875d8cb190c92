// SPDX-License-Identifier: Apache-2.0
#include "core/place/mapper.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/check.h"

namespace commlens {
namespace {

using Groups = std::vector<std::uint32_t>;
constexpr std::uint64_t effort = 10'000'000;

SlotTree nodes(Groups of) { return {{std::move(of)}, {20, 4}}; }

// Slot s is on node s / size.
SlotTree equal_nodes(std::uint32_t slots, std::uint32_t size) {
  Groups of(slots);
  for (std::uint32_t s = 0; s < slots; ++s) of[s] = s / size;
  return nodes(of);
}

RoleTraffic traffic(std::vector<Exchange> exchanges, std::size_t roles) {
  return {std::move(exchanges), std::vector<std::uint64_t>(roles)};
}

unsigned distance(const SlotTree& tree, std::uint32_t a, std::uint32_t b) {
  std::size_t shared = 0;
  while (shared < tree.groups.size() && tree.groups[shared][a] == tree.groups[shared][b]) ++shared;
  return tree.distances[shared];
}

double cost(const RoleTraffic& t, const SlotTree& tree, const Groups& slot_of) {
  double sum = 0;
  for (const Exchange& e : t.exchanges) {
    if (e.one != e.other) sum += double(e.bytes) * distance(tree, slot_of[e.one], slot_of[e.other]);
  }
  for (std::size_t a = 0; a < slot_of.size(); ++a) {
    for (std::size_t b = 0; b < slot_of.size(); ++b) {
      if (a != b) sum += double(t.to_all[a]) * distance(tree, slot_of[a], slot_of[b]);
    }
  }
  return sum;
}

Groups identity(std::size_t size) {
  Groups all(size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The mapper gives each slot one role, and says what its order costs.
void check_order(const RoleTraffic& t, const SlotTree& tree, const NewOrder& found) {
  const std::size_t size = t.to_all.size();
  Groups sorted = found.slot_of_role;
  std::sort(sorted.begin(), sorted.end());
  CHECK_EQ(sorted == identity(size), true);
  CHECK_EQ(found.before, cost(t, tree, identity(size)));
  CHECK_EQ(found.after, cost(t, tree, found.slot_of_role));
}

std::size_t pairs_between_nodes(const RoleTraffic& t, const SlotTree& tree, const NewOrder& found) {
  return static_cast<std::size_t>(std::count_if(t.exchanges.begin(), t.exchanges.end(), [&](const Exchange& e) {
    return tree.groups[0][found.slot_of_role[e.one]] != tree.groups[0][found.slot_of_role[e.other]];
  }));
}

// A stencil whose role numbers say nothing of the grid.
RoleTraffic shuffled_stencil(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  std::mt19937 random(seed);
  Groups number = identity(width * height);
  std::shuffle(number.begin(), number.end(), random);
  std::vector<Exchange> all;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const std::uint32_t here = y * width + x;
      if (x + 1 < width) all.push_back({number[here], number[here + 1], 1000});
      if (y + 1 < height) all.push_back({number[here], number[here + width], 1000});
    }
  }
  return traffic(std::move(all), width * height);
}

}  // namespace

TEST(up_to_eight_processes_get_the_best_order_of_all) {
  std::mt19937 random(7);
  for (int instance = 0; instance < (check::is_slow ? 20 : 150); ++instance) {
    const std::uint32_t size = 2 + random() % 5 + (instance % 10 == 0 ? 2 : 0);
    SlotTree tree{{Groups(size), Groups(size)}, {20, 4, 3}};
    for (std::uint32_t s = 0; s < size; ++s) {
      tree.groups[0][s] = random() % 3;
      tree.groups[1][s] = 2 * tree.groups[0][s] + random() % 2;
    }
    RoleTraffic t = traffic({}, size);
    for (std::uint32_t n = random() % (2 * size); n > 0; --n) {
      t.exchanges.push_back({std::uint32_t(random() % size), std::uint32_t(random() % size), random() % 1000});
    }
    const NewOrder found = better_order(t, tree, effort);
    check_order(t, tree, found);
    Groups tried = identity(size);
    double least = cost(t, tree, tried);
    do {
      least = std::min(least, cost(t, tree, tried));
    } while (std::next_permutation(tried.begin(), tried.end()));
    CHECK_EQ(found.after, least);
  }
}

TEST(pairs_that_are_apart_come_together) {
  for (const std::uint32_t nodes_there : {2u, 3u, 16u, 50u}) {
    const std::uint32_t size = 4 * nodes_there;
    Groups of(size);
    for (std::uint32_t s = 0; s < size; ++s) of[s] = s % nodes_there;
    std::vector<Exchange> pairs;
    for (std::uint32_t r = 0; r < size; r += 2) pairs.push_back({r, r + 1, 1000});
    const RoleTraffic t = traffic(pairs, size);
    const SlotTree tree = nodes(of);
    const NewOrder found = better_order(t, tree, effort);
    check_order(t, tree, found);
    CHECK_EQ(found.after, 1000.0 * 4 * size / 2);
  }
}

TEST(shuffled_stencils_become_blocks) {
  // docs/decisions/0033-placement.md counts the pairs between nodes of the best blocks.
  struct {
    std::uint32_t width, height, node, best;
  } const cases[] = {{4, 4, 4, 8}, {8, 8, 16, 16}, {6, 4, 6, 10}};
  for (const auto& c : cases) {
    const SlotTree tree = equal_nodes(c.width * c.height, c.node);
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      const RoleTraffic t = shuffled_stencil(c.width, c.height, seed);
      const NewOrder found = better_order(t, tree, effort);
      check_order(t, tree, found);
      CHECK_EQ(pairs_between_nodes(t, tree, found), std::size_t{c.best});
    }
  }
}

TEST(what_is_best_already_stays) {
  std::vector<Exchange> pairs;
  for (std::uint32_t r = 0; r < 32; r += 2) pairs.push_back({r, r + 1, 10});
  const NewOrder found = better_order(traffic(pairs, 32), equal_nodes(32, 4), effort);
  CHECK_EQ(found.slot_of_role == identity(32), true);
  CHECK_EQ(found.after, found.before);
}

TEST(those_that_need_not_move_stay) {
  // Only roles 3 and 4 are on the wrong node.
  const std::vector<Exchange> exchanges{{0, 1, 9}, {1, 2, 9}, {2, 4, 9},  {3, 5, 9},  {5, 6, 9},
                                        {6, 7, 9}, {8, 9, 9}, {9, 10, 9}, {10, 11, 9}};
  const NewOrder found = better_order(traffic(exchanges, 12), equal_nodes(12, 4), effort);
  CHECK_EQ(found.slot_of_role == (Groups{0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11}), true);
}

TEST(unequal_nodes_are_filled) {
  // A group of 5, one of 3 and one alone; the largest node is the last.
  const std::vector<Exchange> exchanges{{0, 3, 5}, {3, 6, 5}, {6, 1, 5}, {1, 8, 5}, {2, 4, 5}, {4, 7, 5}};
  const RoleTraffic t = traffic(exchanges, 9);
  const SlotTree tree = nodes({7, 1, 1, 1, 2, 2, 2, 2, 2});
  const NewOrder found = better_order(t, tree, effort);
  check_order(t, tree, found);
  CHECK_EQ(pairs_between_nodes(t, tree, found), std::size_t{0});
}

TEST(inside_a_node_sockets_count) {
  // Two nodes with two sockets of four; groups of four are spread over the sockets of their node.
  SlotTree tree{{Groups(16), Groups(16)}, {20, 4, 3}};
  for (std::uint32_t s = 0; s < 16; ++s) {
    tree.groups[0][s] = s / 8;
    tree.groups[1][s] = 2 * (s / 8) + s % 2;
  }
  std::vector<Exchange> exchanges;
  for (std::uint32_t r = 0; r < 16; ++r) {
    for (std::uint32_t other = r + 1; other / 4 == r / 4; ++other) exchanges.push_back({r, other, 100});
  }
  const RoleTraffic t = traffic(exchanges, 16);
  const NewOrder found = better_order(t, tree, effort);
  check_order(t, tree, found);
  CHECK_EQ(found.after, 100.0 * 3 * 24);
}

TEST(what_goes_to_all_costs_the_same_anywhere_on_equal_nodes) {
  RoleTraffic t = traffic({{0, 4, 100}, {1, 5, 100}, {2, 6, 100}, {3, 7, 100}}, 8);
  t.to_all = {7, 7, 7, 7, 7, 7, 7, 1000};
  const SlotTree tree = equal_nodes(8, 4);
  const NewOrder found = better_order(t, tree, effort);
  check_order(t, tree, found);
  CHECK_EQ(found.before - found.after, 4 * 100.0 * (20 - 4));
}

TEST(nothing_to_place) {
  const SlotTree one_node = nodes(Groups(6));
  const NewOrder together = better_order(traffic({{0, 5, 100}}, 6), one_node, effort);
  CHECK_EQ(together.slot_of_role == identity(6), true);
  CHECK_EQ(together.after, 400.0);
  const NewOrder silent = better_order(traffic({}, 6), equal_nodes(6, 2), effort);
  CHECK_EQ(silent.slot_of_role == identity(6), true);
  CHECK_EQ(silent.before, 0.0);
  const NewOrder alone = better_order(traffic({{0, 0, 100}}, 1), nodes({5}), effort);
  CHECK_EQ(alone.slot_of_role == identity(1), true);
  const NewOrder no_levels = better_order(traffic({{0, 1, 1}}, 2), {{Groups{0, 0}, Groups{3, 3}}, {20, 4, 3}}, effort);
  CHECK_EQ(no_levels.after, 3.0);
}

TEST(without_effort_there_is_an_order_all_the_same) {
  const RoleTraffic t = shuffled_stencil(16, 16, 1);
  const SlotTree tree = equal_nodes(256, 16);
  const NewOrder found = better_order(t, tree, 0);
  check_order(t, tree, found);
  CHECK_EQ(found.after < 0.7 * found.before, true);
}

TEST(random_traffic_on_random_nodes_gets_an_order_that_is_not_worse) {
  std::mt19937 random(3);
  for (int instance = 0; instance < (check::is_slow ? 10 : 100); ++instance) {
    const std::uint32_t size = 9 + random() % 60, nodes_there = 1 + random() % 8;
    Groups of(size);
    for (std::uint32_t& node : of) node = random() % nodes_there;
    RoleTraffic t = traffic({}, size);
    for (std::uint64_t& bytes : t.to_all) bytes = random() % 3;
    for (std::uint32_t n = random() % (4 * size); n > 0; --n) {
      t.exchanges.push_back({std::uint32_t(random() % size), std::uint32_t(random() % size), random() % 1000});
    }
    const SlotTree tree = nodes(of);
    const NewOrder found = better_order(t, tree, effort);
    check_order(t, tree, found);
    CHECK_EQ(found.after <= found.before, true);
    CHECK_EQ(better_order(t, tree, effort).slot_of_role == found.slot_of_role, true);
  }
}

TEST(a_gain_pays_when_it_exceeds_the_cost_by_what_is_asked_for) {
  // 30 % less; the call takes 1 s of 10 s of communication: 10 %.
  Balance b{1000, 700, 1, 10, 20};
  CHECK_EQ(gain_percent(b), 30.0);
  CHECK_EQ(pays(b), true);
  b.min_percent = 21;
  CHECK_EQ(pays(b), false);
  b.cost_s = 0;
  CHECK_EQ(pays(b), true);
  b.communicating_s = 0;
  CHECK_EQ(pays(b), false);
  b.min_percent = 0;
  b.cost_s = 1000;
  CHECK_EQ(pays(b), true);
  b.after = b.before;
  CHECK_EQ(pays(b), false);
  CHECK_EQ(gain_percent({0, 0, 0, 0, 0}), 0.0);
}

}  // namespace commlens
