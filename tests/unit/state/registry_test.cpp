// SPDX-License-Identifier: Apache-2.0
#include "core/state/registry.h"

#include <set>
#include <string>
#include <thread>

#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr std::uint32_t own = 2;  // records every registry has from the start

CommRecord record_of(Identity identity) {
  CommRecord record;
  record.kind = CommKind::intra;
  record.identity = identity;
  record.letter = 's';
  return record;
}

}  // namespace

TEST(a_new_registry_knows_no_communicator_and_any_set) {
  Registry registry;
  CHECK_EQ(registry.none().index, 0u);
  CHECK_EQ(registry.records().size(), own);
  CHECK(registry.records()[0].kind == CommKind::none);
  CHECK(registry.records()[1].kind == CommKind::set);
  CHECK(registry.records()[1].members.empty());
}

TEST(communicators_are_numbered_as_they_come_and_those_that_count_are_counted) {
  Registry registry;
  const CommView& world = registry.add(record_of(1), false);
  const CommView& first = registry.add(record_of(2), true);
  const CommView& set = registry.add(record_of(3), false);
  const CommView& second = registry.add(record_of(4), true);
  CHECK_EQ(world.index, own);
  CHECK_EQ(first.index, own + 1);
  CHECK_EQ(set.index, own + 2);
  CHECK_EQ(second.index, own + 3);
  CHECK_EQ(registry.records()[own].count, 0u);
  CHECK_EQ(registry.records()[own + 1].count, 1u);
  CHECK_EQ(registry.records()[own + 3].count, 2u);
  CHECK_EQ(registry.lineage(own + 3).identity, 4u);
}

TEST(a_view_never_moves) {
  Registry registry;
  std::vector<const CommView*> views;
  for (Identity i = 1; i <= 10'000; ++i) views.push_back(&registry.add(record_of(i), true));
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    CHECK_EQ(&registry.records()[own + i].view, views[i]);
    CHECK_EQ(views[i]->index, own + i);
    CHECK_EQ(registry.lineage(own + i).identity, i + 1);
  }
}

TEST(creations_are_counted_on_each_parent_and_under_each_key_by_themselves) {
  Registry registry;
  const std::uint32_t first = registry.add(record_of(1), false).index;
  const std::uint32_t second = registry.add(record_of(2), true).index;
  for (std::uint32_t n = 0; n < 5; ++n) {
    CHECK_EQ(registry.next_on_parent(first), n);
    if (n % 2 == 0) CHECK_EQ(registry.next_on_parent(second), n / 2);
    CHECK_EQ(registry.next_under(77), n);
    CHECK_EQ(registry.next_under(1000 + n), 0u);
  }
}

TEST(a_communicator_remembers_its_name_and_that_it_was_freed) {
  Registry registry;
  const std::uint32_t index = registry.add(record_of(1), true).index;
  CHECK_EQ(registry.records()[index].freed, 0u);
  registry.name(index, "rows");
  registry.name(index, "columns");
  CHECK_EQ(registry.records()[index].user_name, std::string("columns"));
  registry.freed(index);
  CHECK(registry.records()[index].freed >= registry.records()[index].created);
  registry.name(0, "nothing");
  CHECK(registry.records()[0].user_name.empty());
}

TEST(the_same_communicators_are_one_set_and_others_are_others) {
  Registry registry;
  for (Identity i = 1; i <= 20; ++i) registry.add(record_of(i), true);
  std::set<std::uint32_t> indices;
  std::vector<const CommView*> views;
  for (int round = 0; round < 2; ++round) {
    std::size_t n = 0;
    for (std::uint32_t a = own; a < own + 20; ++a) {
      for (std::uint32_t b = a + 1; b < own + 20; ++b, ++n) {
        const std::uint32_t members[2] = {a, b};
        const CommView& view = registry.set_of(members, 2);
        if (round == 0) {
          CHECK(indices.insert(view.index).second);
          views.push_back(&view);
          CHECK(registry.records()[view.index].members == std::vector<std::uint32_t>(members, members + 2));
        }
        CHECK_EQ(views[n], &view);
      }
    }
  }
  const std::uint32_t three[3] = {own, own + 1, own + 2};
  CHECK_EQ(indices.count(registry.set_of(three, 3).index), 0u);
  CHECK_EQ(registry.records()[registry.set_of(three, 3).index].count, 0u);
}

TEST(a_program_that_makes_ever_new_sets_gets_one_for_all_of_them) {
  Registry registry;
  for (Identity i = 1; i <= 100; ++i) registry.add(record_of(i), true);
  std::vector<std::uint32_t> indices;
  for (std::uint32_t a = own; a < own + 100; ++a) {
    for (std::uint32_t b = a + 1; b < own + 100; ++b) {
      const std::uint32_t members[2] = {a, b};
      indices.push_back(registry.set_of(members, 2).index);
    }
  }
  const std::set<std::uint32_t> different(indices.begin(), indices.end());
  CHECK(different.size() >= 100 && different.size() <= 1000);
  CHECK_EQ(registry.records().size(), own + 100 + different.size() - 1);
  CHECK(registry.records()[indices.back()].members.empty());
  CHECK(registry.records()[indices.back()].kind == CommKind::set);
  const std::uint32_t first[2] = {own, own + 1};  // was there before, and stays itself
  CHECK_EQ(registry.set_of(first, 2).index, indices[0]);
  CHECK(registry.records()[indices[0]].members == std::vector<std::uint32_t>(first, first + 2));
}

TEST(threads_may_make_communicators_and_sets_at_the_same_time) {
  Registry registry;
  for (Identity i = 1; i <= 8; ++i) registry.add(record_of(i), true);
  constexpr std::uint32_t each = 2000;
  std::vector<std::thread> threads;
  for (Identity t = 0; t < 3; ++t) {
    threads.emplace_back([&registry, t] {
      for (Identity n = 0; n < each; ++n) {
        const CommView& view = registry.add(record_of(100 + t * each + n), true);
        CHECK_EQ(registry.lineage(view.index).identity, 100 + t * each + n);
        registry.next_on_parent(own);
        registry.next_under(5);
        const std::uint32_t members[2] = {own + static_cast<std::uint32_t>(n % 7), own + 7};
        CHECK(registry.set_of(members, 2).index != 0);
        registry.freed(view.index);
        registry.name(view.index, "n");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(registry.next_on_parent(own), 3 * each);
  CHECK_EQ(registry.next_under(5), 3 * each);
  std::set<std::uint32_t> counts;
  for (const CommRecord& r : registry.records()) {
    if (r.count != 0) CHECK(counts.insert(r.count).second);
  }
  CHECK_EQ(counts.size(), 8 + 3 * each);
}

TEST(those_that_are_alike_share_a_record_and_keep_what_differs) {
  Registry registry;
  const auto one = [](Identity identity, int rank) {
    CommRecord record;
    record.kind = CommKind::intra;
    record.identity = identity;
    record.root = 77;
    record.view.rank = rank;
    record.view.size = 4;
    return record;
  };
  const CommView& first = registry.add_sibling(one(5, 0));
  const CommView& again = registry.add_sibling(one(5, 0));
  const CommView& elsewhere = registry.add_sibling(one(5, 3));
  const CommView& another = registry.add_sibling(one(6, 0));
  CHECK(&first == &again);
  CHECK_EQ(elsewhere.index, first.index);
  CHECK_EQ(elsewhere.rank, 3);
  CHECK(another.index != first.index);
  const CommRecord& shared = registry.records()[first.index];
  CHECK_EQ(shared.communicators, 3u);
  CHECK_EQ(shared.count, 1u);
  CHECK_EQ(registry.lineage(first.index).root, 77u);
  // freed when all of them are
  registry.freed(first.index);
  registry.freed(first.index);
  CHECK_EQ(shared.freed, 0u);
  registry.freed(first.index);
  CHECK(shared.freed != 0);
  registry.add_sibling(one(5, 0));
  CHECK_EQ(shared.freed, 0u);
  // a name would be one of many
  registry.name(first.index, "one of many");
  CHECK_EQ(shared.user_name, std::string());
}

}  // namespace commlens
