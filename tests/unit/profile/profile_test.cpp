// SPDX-License-Identifier: Apache-2.0
// packed() on every rank, then Profile on the rank that writes.
#include "core/profile/profile.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "core/hot/thread.h"
#include "core/process/modules.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// Places that can be call sites: addresses inside this executable.
char places[64];
Site place(std::size_t i) { return reinterpret_cast<Site>(&places[i]); }

// The ranks of a group as "0-3,8" or "0-14:2" says them.
std::vector<int> expanded(const std::string& text) {
  std::vector<int> ranks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0, stride = 1;
    const int read = std::sscanf(part.c_str(), "%d-%d:%d", &first, &last, &stride);
    if (read < 2) last = first;
    for (int r = first; r <= last; r += stride) ranks.push_back(r);
  }
  return ranks;
}

// The paper's first example: 30 calls on the world, 100 on each of two halves.
std::vector<std::vector<char>> halves(int ranks) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < ranks; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, ranks);
      std::vector<int> members;
      const int first = rank < ranks / 2 ? 0 : ranks / 2;
      for (int r = first; r < first + ranks / 2; ++r) members.push_back(r);
      const std::uint32_t half =
          add_comm(registry, rank, {static_cast<Identity>(2000 + first), 's', members, place(0)});
      count(world, op::MPI_Allreduce, 30, 10, 8);
      count(half, op::MPI_Allreduce, 100, 20, 16);
    }));
  }
  return packages;
}

}  // namespace

TEST(ranks_that_split_the_world_have_three_communicators_with_their_calls) {
  for (const int ranks : {2, 4, 16}) {
    const Profile profile = merged(halves(ranks));
    const std::string second = "s" + std::to_string(ranks / 2) + ".1";
    CHECK_EQ(profile.ranks.size(), static_cast<std::size_t>(ranks));
    CHECK_EQ(profile.comms.size(), 4u);
    if (profile.comms.size() != 4) return;
    CHECK_EQ(profile.comms[0].name, std::string("-"));
    CHECK_EQ(profile.comms[1].name, std::string("W0.0"));
    CHECK_EQ(profile.comms[2].name, std::string("s0.1"));
    CHECK_EQ(profile.comms[3].name, second);
    const auto p = static_cast<std::uint64_t>(ranks);
    CHECK_EQ(calls_in(profile, "W0.0"), 30 * p);
    CHECK_EQ(calls_in(profile, "s0.1"), 100 * p / 2);
    CHECK_EQ(calls_in(profile, second), 100 * p / 2);
    CHECK_EQ(calls_in(profile, "s0.1", ranks / 2), 0u);
    CHECK_EQ(calls_in(profile, second, ranks / 2), 100u);
    const Profile::Comm& c = profile.comms[3];
    CHECK_EQ(c.parent, 1);
    CHECK_EQ(c.size, ranks / 2);
    CHECK_EQ(c.leader, ranks / 2);
    CHECK_EQ(c.op, static_cast<std::uint32_t>(op::MPI_Comm_split));
    CHECK(c.site > 0 && c.site == profile.comms[2].site);
    CHECK(expanded(c.members).front() == ranks / 2 && expanded(c.members).back() == ranks - 1);
    CHECK_EQ(c.family, profile.comms[2].family);
    CHECK(c.family != profile.comms[1].family);
    for (const Profile::Rank& rank : profile.ranks) {
      CHECK_EQ(rank.calls, 130u);
      CHECK_EQ(rank.mpi_ns, 30u * 10 + 100 * 20);
      CHECK_EQ(rank.lost_calls, 0u);
      CHECK_EQ(rank.facts.pid, 100 + rank.facts.rank);
      CHECK_EQ(rank.facts.app_ns, 1'000'000u + static_cast<Ns>(rank.facts.rank));
    }
  }
}

TEST(the_order_in_which_ranks_are_added_does_not_matter) {
  std::vector<std::vector<char>> packages = halves(4);
  const Profile first = merged(packages);
  std::swap(packages[0], packages[3]);
  std::swap(packages[1], packages[2]);
  const Profile second = merged(packages);
  CHECK_EQ(first.comms.size(), second.comms.size());
  for (std::size_t i = 0; i < first.comms.size(); ++i) {
    CHECK_EQ(first.comms[i].name, second.comms[i].name);
    CHECK_EQ(first.comms[i].members, second.comms[i].members);
    CHECK_EQ(first.comms[i].created_ns, second.comms[i].created_ns);
  }
  CHECK_EQ(first.rows.size(), second.rows.size());
  for (std::size_t i = 0; i < first.rows.size(); ++i) {
    CHECK_EQ(first.rows[i].key, second.rows[i].key);
    CHECK_EQ(first.rows[i].rank, second.rows[i].rank);
    CHECK_EQ(first.rows[i].calls, second.rows[i].calls);
  }
}

namespace {

struct RandomCall {
  std::uint32_t comm, op, bin;
  std::size_t place;
  Ticks spent;
  std::uint64_t sent, received;
};

template <class Use>
void random_calls(int rank, std::uint32_t last, Use use) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 7);
  for (int i = 0; i < 5000; ++i) {
    RandomCall c{};
    c.comm = static_cast<std::uint32_t>(random() % (last - world + 2));
    if (c.comm != 0) c.comm += world - 1;
    c.op = static_cast<std::uint32_t>(1 + random() % 6);
    c.bin = random() % 5 == 0 ? v_bin : static_cast<std::uint32_t>(random() % 4);
    c.place = random() % 5;
    c.spent = random() % 100'000;
    c.sent = random() % 1000;
    c.received = random() % 1000;
    use(c);
  }
}

struct Sum {
  std::uint64_t calls = 0, time = 0, shortest = 0, longest = 0, sent = 0, received = 0;
};

}  // namespace

TEST(random_calls_of_many_ranks_add_up_like_a_map) {
  constexpr int ranks = 5;
  constexpr std::uint32_t last = world + 5;  // the world and five duplicates
  const auto identity = [](std::uint32_t comm) { return comm == world ? world_identity : Identity{5000} + comm; };
  const std::vector<Module> modules = loaded_modules();
  const Module& here = *module_at(modules, place(0));
  using Where = std::tuple<Identity, std::uint32_t, std::uint32_t, std::uint64_t, int>;
  std::map<Where, Sum> oracle;
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < ranks; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, ranks);
      for (std::uint32_t c = world + 1; c <= last; ++c) add_comm(registry, rank, {identity(c), 'd', {0, 1, 2, 3, 4}});
      random_calls(rank, last, [](const RandomCall& c) {
        const Site site = c.place == 0 ? 0 : place(c.place);
        record(this_thread(), make_key(c.comm, c.op, c.bin, 0), site, c.spent, c.sent, c.received);
      });
    }));
    random_calls(rank, last, [&](const RandomCall& c) {
      Sum& sum = oracle[{c.comm == 0 ? 0 : told(identity(c.comm)), c.op, c.bin,
                         c.place == 0 ? 0 : place(c.place) - here.base, rank}];
      sum.shortest = sum.calls == 0 ? c.spent : std::min(sum.shortest, c.spent);
      sum.longest = std::max(sum.longest, c.spent);
      ++sum.calls;
      sum.time += c.spent;
      sum.sent += c.sent;
      sum.received += c.received;
    });
  }
  const Profile profile = merged(packages);
  CHECK_EQ(profile.rows.size(), oracle.size());
  for (const Profile::Row& row : profile.rows) {
    const Profile::KeyFacts& key = profile.keys[row.key];
    const SiteFacts& site = profile.sites[key.site];
    const Sum sum = oracle[{profile.comms[key.comm].identity, key.op, key.bin, site.offset, row.rank}];
    CHECK_EQ(row.calls, sum.calls);
    CHECK_EQ(row.time, sum.time);
    CHECK_EQ(row.time_min, sum.shortest);
    CHECK_EQ(row.time_max, sum.longest);
    CHECK_EQ(row.bytes_sent, sum.sent);
    CHECK_EQ(row.bytes_received, sum.received);
    if (key.site != 0) {
      CHECK_EQ(site.module, here.path);
      CHECK_EQ(site.build_id, here.build_id);
    }
  }
  CHECK_EQ(profile.sites.size(), 5u);  // none, and the same four on every rank
  for (std::size_t i = 1; i < profile.rows.size(); ++i) {
    const Profile::Row &a = profile.rows[i - 1], &b = profile.rows[i];
    CHECK(std::make_pair(a.key, a.rank) < std::make_pair(b.key, b.rank));
  }
}

TEST(the_threads_of_a_rank_are_added_up) {
  const Profile profile = merged({packed_by_rank(0, [](Registry& registry) {
    add_world(registry, 0, 1);
    count(world, op::MPI_Send, 3, 50, 8);
    std::thread([] { count(world, op::MPI_Send, 4, 20, 8); }).join();
    std::thread([] {
      count(world, op::MPI_Recv, 1, 70);
      // It completes a receive the first thread began: bytes without a call.
      find_cell(this_thread().table, make_key(world, op::MPI_Send, bin_of(8), 0), 0)->bytes_received += 100;
    }).join();
  })});
  CHECK_EQ(profile.rows.size(), 2u);
  CHECK_EQ(profile.ranks[0].calls, 8u);
  for (const Profile::Row& row : profile.rows) {
    if (profile.keys[row.key].op != op::MPI_Send) continue;
    CHECK_EQ(row.calls, 7u);
    CHECK_EQ(row.time, 230u);
    CHECK_EQ(row.time_min, 20u);
    CHECK_EQ(row.time_max, 50u);
    CHECK_EQ(row.bytes_sent, 56u);
    CHECK_EQ(row.bytes_received, 100u);
  }
}

TEST(calls_without_a_key_are_reported_as_lost_under_no_communicator) {
  const Profile profile = merged({packed_by_rank(0, [](Registry& registry) {
    add_world(registry, 0, 1);
    count(world, op::MPI_Send, 2);
    count(0, op::unknown, 1, 5);
    for (int i = 0; i < 5; ++i) add_call(this_thread().table.overflow, 10, 8, 0);
    // A request whose maker is the overflow cell receives.
    const Cell& maker = this_thread().table.overflow;
    find_cell(this_thread().table, maker.key, maker.site)->bytes_received += 64;
  })});
  CHECK_EQ(profile.ranks[0].lost_calls, 5u);
  CHECK_EQ(profile.ranks[0].calls, 8u);
  CHECK_EQ(profile.rows.size(), 2u);
  CHECK_EQ(calls_in(profile, "-"), 6u);
  CHECK_EQ(profile.rows[0].bytes_sent, 40u);
  CHECK_EQ(profile.rows[0].bytes_received, 64u);
  CHECK_EQ(profile.rows[0].time_min, 5u);
}

TEST(members_are_written_as_ranges_that_give_them_back) {
  constexpr int ranks = 12;
  std::mt19937 random(3);
  std::vector<std::vector<int>> groups{{0, 1, 2, 3}, {0, 2, 4, 6},          {1, 5},       {3, 2, 1},
                                       {7},          {0, 1, 2, 5, 7, 8, 9}, {0, 2, 3, 4}, {0, 3, 6, 7, 8}};
  for (int i = 0; i < 100; ++i) {
    std::vector<int> group(ranks);
    for (int r = 0; r < ranks; ++r) group[static_cast<std::size_t>(r)] = r;
    std::shuffle(group.begin(), group.end(), random);
    group.resize(1 + random() % ranks);
    if (i % 2 == 0) std::sort(group.begin(), group.end());
    groups.push_back(group);
  }
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < ranks; ++rank) {
    packages.push_back(packed_by_rank(rank, [&](Registry& registry) {
      add_world(registry, rank, ranks);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (std::count(groups[g].begin(), groups[g].end(), rank) != 0) {
          add_comm(registry, rank, {Identity{3000} + g, 's', groups[g]});
        }
      }
    }));
  }
  const Profile profile = merged(packages);
  std::map<Identity, std::string> members;
  for (const Profile::Comm& c : profile.comms) members[c.identity] = c.members;
  for (std::size_t g = 0; g < groups.size(); ++g) CHECK(expanded(members[told(3000 + g)]) == groups[g]);
  CHECK_EQ(members[told(world_identity)], std::string("0-11"));
  CHECK_EQ(members[told(3000)], std::string("0-3"));
  CHECK_EQ(members[told(3001)], std::string("0-6:2"));
  CHECK_EQ(members[told(3002)], std::string("1,5"));
  CHECK_EQ(members[told(3003)], std::string("3,2,1"));
  CHECK_EQ(members[told(3004)], std::string("7"));
  CHECK_EQ(members[told(3005)], std::string("0-2,5,7-9"));
}

TEST(an_intercommunicator_has_two_groups_and_is_told_by_the_first) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 5; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, 5);
      const bool second = rank >= 2;
      CommRecord record;
      record.kind = CommKind::inter;
      record.identity = 77;
      record.letter = 'I';
      record.parent = world;
      record.op = op::MPI_Intercomm_create;
      record.leader = 0;
      record.second_side = second;
      record.view.rank = second ? rank - 2 : rank;
      record.view.size = second ? 3 : 2;
      record.remote_size = second ? 2 : 3;
      for (int i = 0; i < rank; ++i)
        add_comm(registry, rank, {Identity{100} + static_cast<Identity>(rank), 'd', {rank}});
      registry.add(std::move(record), true);
    }));
  }
  std::reverse(packages.begin(), packages.end());
  const Profile profile = merged(packages);
  const Profile::Comm* const c = comm_named(profile, "I0.1");
  CHECK(c != nullptr);
  if (c == nullptr) return;
  CHECK_EQ(c->members, std::string("0-1 | 2-4"));
  CHECK_EQ(c->size, 2);
  CHECK_EQ(c->remote_size, 3);
  CHECK_EQ(c->leader, 0);
}

TEST(the_same_communicators_are_one_set_in_whatever_order_ranks_met_them) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 2; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, 2);
      const Made a{501, 'd', {0, 1}}, b{502, 's', {0, 1}};
      std::uint32_t index[2];
      index[0] = add_comm(registry, rank, rank == 0 ? a : b);
      index[1] = add_comm(registry, rank, rank == 0 ? b : a);
      const std::uint32_t with_world[2] = {world, index[rank]};  // the same one on both
      count(registry.set_of(index, 2).index, op::MPI_Waitall, 3);
      count(registry.set_of(with_world, 2).index, op::MPI_Waitall, 4);
    }));
  }
  const Profile profile = merged(packages);
  int sets = 0;
  for (const Profile::Comm& c : profile.comms) sets += c.kind == CommKind::set ? 1 : 0;
  CHECK_EQ(sets, 2);
  CHECK_EQ(calls_in(profile, "{d0.1,s0.2}"), 6u);
  CHECK_EQ(calls_in(profile, "{W0.0,d0.1}"), 8u);
  CHECK(profile.comms.back().kind == CommKind::set);  // behind all others
  const Profile::Comm* const set = comm_named(profile, "{d0.1,s0.2}");
  if (set != nullptr) CHECK(set->set == (std::vector<int>{2, 3}));
}

TEST(the_set_for_all_further_sets_is_the_same_on_all_ranks_and_names_no_members) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 2; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, 2);
      std::uint32_t last = world;
      for (Identity i = 0; i < 60; ++i) last = add_comm(registry, rank, {100 + i, 'd', {0, 1}});
      for (std::uint32_t a = world; a <= last; ++a) {
        for (std::uint32_t b = a + 1; b <= last; ++b) {
          const std::uint32_t members[2] = {a, b};
          count(registry.set_of(members, 2).index, op::MPI_Waitany, 1);
        }
      }
    }));
  }
  const Profile profile = merged(packages);
  const Profile::Comm* const rest = comm_named(profile, "{*}");
  CHECK(rest != nullptr && rest->set.empty() && rest->kind == CommKind::set);
  std::uint64_t calls = 0;
  for (const Profile::Row& row : profile.rows) calls += row.calls;
  CHECK_EQ(calls, 2u * 61 * 60 / 2);
  CHECK(calls_in(profile, "{*}") > 1000);
  CHECK_EQ(calls_in(profile, "{*}", 0) * 2, calls_in(profile, "{*}"));
}

TEST(self_and_sets_are_told_only_if_they_are_used_and_what_was_made_always) {
  const auto life = [](bool uses, int rank) {
    return [=](Registry& registry) {
      add_world(registry, rank, 2);
      CommRecord self;
      self.kind = CommKind::intra;
      self.identity = Identity{900} + static_cast<Identity>(rank);
      self.letter = letter_self;
      self.leader = rank;
      self.view.size = 1;
      const std::uint32_t self_index = registry.add(std::move(self), false).index;
      add_comm(registry, rank, {901'000, 'd', {0, 1}});
      const std::uint32_t both[2] = {world, self_index};
      const std::uint32_t set = registry.set_of(both, 2).index;
      if (uses) count(set, op::MPI_Waitall, 1);
    };
  };
  const Profile idle = merged({packed_by_rank(0, life(false, 0)), packed_by_rank(1, life(false, 1))});
  CHECK_EQ(idle.comms.size(), 3u);
  CHECK(comm_named(idle, "d0.1") != nullptr);
  const Profile busy = merged({packed_by_rank(0, life(true, 0)), packed_by_rank(1, life(true, 1))});
  CHECK_EQ(busy.comms.size(), 7u);
  const Profile::Comm *const s0 = comm_named(busy, "S0.0"), *const s1 = comm_named(busy, "S1.0");
  CHECK(s0 != nullptr && s1 != nullptr);
  if (s0 != nullptr && s1 != nullptr) CHECK_EQ(s0->family, s1->family);
  CHECK_EQ(calls_in(busy, "{W0.0,S1.0}"), 1u);
}

TEST(a_communicator_is_told_with_its_parent_even_if_that_is_not_used) {
  const Profile profile = merged({packed_by_rank(0, [](Registry& registry) {
    add_world(registry, 0, 1);
    CommRecord self;
    self.kind = CommKind::intra;
    self.identity = 900;
    self.letter = letter_self;
    self.leader = 0;
    self.view.size = 1;
    const std::uint32_t index = registry.add(std::move(self), false).index;
    add_comm(registry, 0, {901, 'd', {0}, 0, index});
  })});
  const Profile::Comm* const dup = comm_named(profile, "d0.1");
  CHECK(dup != nullptr && dup->parent > 0);
  if (dup != nullptr && dup->parent > 0) {
    CHECK_EQ(profile.comms[static_cast<std::size_t>(dup->parent)].name, std::string("S0.0"));
  }
}

TEST(families_follow_procedure_call_site_and_family_of_the_parent) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 2; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, 2);
      const auto own = static_cast<Identity>(rank);
      for (Identity i = 0; i < 3; ++i) {
        // In a loop: a communicator of one process, from it a duplicate at one place and one at another.
        const std::uint32_t one = add_comm(registry, rank, {10 * i + own + 100, 's', {rank}, place(1)});
        add_comm(registry, rank, {10 * i + own + 200, 'd', {rank}, place(2), one});
        add_comm(registry, rank, {10 * i + own + 300, 'd', {rank}, place(3), one});
      }
      add_comm(registry, rank, {900, 'd', {0, 1}, place(2)});
    }));
  }
  const Profile profile = merged(packages);
  std::map<int, int> sizes;
  std::map<Identity, int> family;
  for (const Profile::Comm& c : profile.comms) {
    ++sizes[c.family];
    family[c.identity] = c.family;
  }
  CHECK_EQ(sizes.size(), 6u);  // none, the world, the loop's three, and the last
  CHECK_EQ(sizes[family[told(100)]], 6);
  CHECK_EQ(sizes[family[told(200)]], 6);
  CHECK_EQ(sizes[family[told(300)]], 6);
  CHECK_EQ(sizes[family[told(900)]], 1);
  CHECK_EQ(sizes[0], 1);
  CHECK_EQ(family[0], 0);
}

TEST(a_name_given_by_any_rank_is_kept_and_the_first_ranks_word_counts) {
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 3; ++rank) {
    packages.push_back(packed_by_rank(rank, [=](Registry& registry) {
      add_world(registry, rank, 3);
      const std::uint32_t a = add_comm(registry, rank, {201, 'd', {0, 1, 2}, place(static_cast<std::size_t>(rank))});
      const std::uint32_t b = add_comm(registry, rank, {202, 'd', {0, 1, 2}});
      if (rank == 2) registry.name(a, "only here");
      registry.name(b, ("rank " + std::to_string(rank)).c_str());
      if (rank == 0) registry.freed(b);
    }));
  }
  std::swap(packages[0], packages[2]);
  const Profile profile = merged(packages);
  const Profile::Comm *const a = comm_named(profile, "d0.1"), *const b = comm_named(profile, "d0.2");
  CHECK(a != nullptr && b != nullptr);
  if (a == nullptr || b == nullptr) return;
  CHECK_EQ(a->user_name, std::string("only here"));
  CHECK_EQ(b->user_name, std::string("rank 0"));
  CHECK_EQ(a->freed_ns, -1);
  CHECK(b->freed_ns >= b->created_ns && b->created_ns > 0);
  const std::vector<Module> modules = loaded_modules();
  const Module& here = *module_at(modules, place(0));
  CHECK_EQ(profile.sites[static_cast<std::size_t>(a->site)].offset, place(0) - here.base);
  CHECK_EQ(b->site, -1);
}

TEST(without_some_ranks_the_others_are_still_whole) {
  std::vector<std::vector<char>> packages = halves(4);
  packages.erase(packages.begin());      // the leader of the world and of the first half
  packages.erase(packages.begin() + 1);  // the leader of the second
  const Profile profile = merged(packages);
  CHECK_EQ(profile.ranks.size(), 2u);
  CHECK_EQ(profile.comms.size(), 4u);
  std::set<std::string> names;
  for (const Profile::Comm& c : profile.comms) CHECK(names.insert(c.name).second);
  std::multiset<std::string> members;
  for (const Profile::Comm& c : profile.comms) members.insert(c.members);
  CHECK(members == (std::multiset<std::string>{"", "1", "1,3", "3"}));
  CHECK_EQ(profile.comms[1].leader, 0);
  CHECK_EQ(profile.rows.size(), 4u);
}

TEST(a_profile_of_nobody_has_only_no_communicator) {
  const Profile profile = merged({});
  CHECK_EQ(profile.comms.size(), 1u);
  CHECK_EQ(profile.comms[0].name, std::string("-"));
}

TEST(a_rank_whose_data_is_cut_off_leaves_nothing) {
  const std::vector<std::vector<char>> packages = halves(2);
  const Profile expected = merged({packages[1]});
  for (std::size_t size = 0; size < packages[0].size(); ++size) {
    Profile profile;
    CHECK(!profile.add(packages[0].data(), size));
    CHECK(profile.add(packages[1].data(), packages[1].size()));
    profile.finish();
    CHECK_EQ(profile.ranks.size(), 1u);
    CHECK_EQ(profile.comms.size(), expected.comms.size());
    CHECK_EQ(profile.sites.size(), expected.sites.size());
    CHECK_EQ(profile.keys.size(), expected.keys.size());
    CHECK_EQ(profile.rows.size(), expected.rows.size());
    CHECK_EQ(profile.comms[1].members, expected.comms[1].members);
  }
}

TEST(a_communicator_a_rank_tells_of_twice_is_one_and_its_calls_are_added_up) {
  const Profile profile = merged({packed_by_rank(0, [](Registry& registry) {
    add_world(registry, 0, 1);
    const std::uint32_t one = add_comm(registry, 0, {300, 'd', {0}});
    const std::uint32_t again = add_comm(registry, 0, {300, 'd', {0}});
    count(one, op::MPI_Barrier, 2, 10);
    count(again, op::MPI_Barrier, 3, 30);
  })});
  CHECK_EQ(profile.rows.size(), 1u);
  CHECK_EQ(calls_in(profile, "d0.1"), 5u);
  CHECK_EQ(profile.rows[0].time_min, 10u);
  CHECK_EQ(profile.rows[0].time_max, 30u);
}

// A chain as deep as this has ended a recursion by the end of its stack.
TEST(communicators_of_communicators_may_be_as_deep_as_they_are_many) {
  constexpr int depth = 300'000;
  Dictionary dictionary;
  CommDraft draft;
  draft.comm.kind = CommKind::intra;
  draft.letter = 'd';
  for (int i = depth; i > 0; --i) {  // children first
    draft.comm.identity = static_cast<Identity>(i);
    draft.parent = static_cast<Identity>(i - 1);
    draft.count = static_cast<std::uint32_t>(i);
    dictionary.comm(draft);
  }
  const Catalogue catalogue = dictionary.catalogue();
  CHECK_EQ(catalogue.comms.size(), std::size_t{depth} + 1);
  std::set<int> families;
  for (const Catalogue::Comm& comm : catalogue.comms) families.insert(comm.family);
  CHECK_EQ(families.size(), std::size_t{depth} + 1);
  CHECK_EQ(dictionary.comm_identities().size(), std::size_t{depth} + 1);
}

TEST(parents_in_a_circle_and_sets_of_sets_come_to_an_end) {
  Dictionary dictionary;
  CommDraft draft;
  draft.comm.kind = CommKind::intra;
  draft.letter = 'd';
  for (const auto& [identity, parent] : std::map<Identity, Identity>{{1, 1}, {2, 3}, {3, 4}, {4, 2}, {5, 4}}) {
    draft.comm.identity = identity;
    draft.parent = parent;
    dictionary.comm(draft);
  }
  CommDraft set;
  set.comm.kind = CommKind::set;
  set.set = {1, 2};
  std::vector<Identity> sets;
  for (int i = 0; i < 60; ++i) {  // each is made of all before it: their names would have 2^60 characters
    const std::uint32_t index = dictionary.comm(set);
    set.set.push_back(dictionary.comm_identities()[index].comm);
  }
  const Catalogue catalogue = dictionary.catalogue();
  CHECK_EQ(catalogue.comms.size(), 1u + 5 + 60);
  for (std::size_t i = 0; i < catalogue.comms.size(); ++i) {
    CHECK(catalogue.comms[i].name.size() < 1000);
    std::size_t steps = 0;
    for (int at = static_cast<int>(i); at >= 0 && steps < 100; ++steps)
      at = catalogue.comms[static_cast<std::size_t>(at)].parent;
    CHECK(steps < 100);
  }
}

}  // namespace commlens
