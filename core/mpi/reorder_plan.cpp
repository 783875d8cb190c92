// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/reorder_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/job/counting.h"
#include "core/job/job.h"
#include "core/mpi/api.h"
#include "core/mpi/peers.h"
#include "core/mpi/pml_hook.h"
#include "core/place/mapper.h"
#include "core/process/cpu_place.h"
#include "core/state/traffic.h"

namespace commlens {
namespace {

constexpr std::uint64_t effort = 20'000'000;                 // steps of the search: about 0.1 s
constexpr std::size_t most_partners = std::size_t{1} << 23;  // of all members together: 128 MiB on rank 0
constexpr std::size_t fewest_partners = 16;                  // that each member may name in any case
// As in `commlens place`: network, node, socket, NUMA domain, core complex.
constexpr unsigned distance_levels[] = {20, 4, 3, 2, 1};

Identity own_node() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return identity_of(name, std::strlen(name));
}

// What goes to each other member alike costs nearly the same in any order: it is one number, so that members that have
// exchanged blocks with all need not name all.
void state_partners(const std::vector<std::uint64_t>& bytes, std::size_t own, ReorderStatement& statement) {
  const std::size_t size = bytes.size();
  std::uint64_t least = size < 2 ? 0 : ~std::uint64_t{0};
  for (std::size_t i = 0; i < size; ++i) {
    if (i != own) least = std::min(least, bytes[i]);
  }
  statement.facts.to_all = least;
  for (std::size_t i = 0; i < size; ++i) {
    if (i != own && bytes[i] > least)
      statement.partners.push_back({bytes[i] - least, static_cast<std::uint32_t>(i), 0});
  }
  const std::size_t most = std::max(most_partners / std::max(size, std::size_t{1}), fewest_partners);
  if (statement.partners.size() > most) {
    std::stable_sort(statement.partners.begin(), statement.partners.end(),
                     [](const PartnerBytes& a, const PartnerBytes& b) { return a.bytes > b.bytes; });
    statement.partners.resize(most);
  }
  statement.facts.partners = statement.partners.size();
}

// ---- on rank 0 ----

// Returns the tree of the members' places.  Levels that a member does not know are left out.
SlotTree slots_of(const std::vector<MemberFacts>& all) {
  SlotTree tree;
  tree.distances.push_back(distance_levels[0]);
  std::vector<std::uint32_t> before(all.size());
  const auto add_level = [&](unsigned distance, auto number_of) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> known;
    std::vector<std::uint32_t> groups;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(known.size());
      groups.push_back(known.emplace(std::pair(before[i], number_of(all[i])), number).first->second);
    }
    before = groups;
    tree.groups.push_back(std::move(groups));
    tree.distances.push_back(distance);
  };
  add_level(distance_levels[1], [](const MemberFacts& f) { return f.node; });
  constexpr std::int32_t MemberFacts::* parts[] = {&MemberFacts::socket, &MemberFacts::numa, &MemberFacts::complex};
  for (std::size_t level = 0; level < std::size(parts); ++level) {
    const auto part = parts[level];
    if (std::any_of(all.begin(), all.end(), [part](const MemberFacts& f) { return f.*part < 0; })) continue;
    add_level(distance_levels[2 + level], [part](const MemberFacts& f) { return static_cast<std::uint64_t>(f.*part); });
  }
  return tree;
}

RoleTraffic traffic_of(const std::vector<MemberFacts>& all, const std::vector<PartnerBytes>& partners) {
  RoleTraffic traffic;
  traffic.exchanges.reserve(partners.size());
  auto next = partners.begin();
  for (std::uint32_t member = 0; member < all.size(); ++member) {
    traffic.to_all.push_back(all[member].to_all);
    for (std::uint64_t i = 0; i < all[member].partners; ++i, ++next)
      traffic.exchanges.push_back({member, next->member, next->bytes});
  }
  return traffic;
}

// begin: when all members had arrived
Balance balance_of(const NewOrder& order, const std::vector<MemberFacts>& all, Ticks begin) {
  Balance balance{order.before, order.after, 0, 0, options().number(Option::reorder_min_gain)};
  std::uint64_t split = ~std::uint64_t{0};
  for (const MemberFacts& facts : all) {
    split = std::min(split, facts.split_ns);  // the last member to arrive has waited for nobody
    balance.communicating_s += static_cast<double>(facts.communicating_ns) * 1e-9 / static_cast<double>(all.size());
  }
  const Ns spent = TickScale::since_start().ns(now() - begin);
  balance.cost_s = static_cast<double>(spent + split) * 1e-9;
  return balance;
}

struct Verdict {
  double gain_percent = 0;
  std::uint64_t is_better = 0;
};

// Writes the new rank of each member to statement.new_ranks.
Verdict searched(ReorderStatement& statement, const std::vector<PartnerBytes>& partners, Ticks begin) noexcept try {
  const NewOrder order = better_order(traffic_of(statement.all, partners), slots_of(statement.all), effort);
  for (std::uint32_t role = 0; role < order.slot_of_role.size(); ++role)
    statement.new_ranks[order.slot_of_role[role]] = static_cast<std::int32_t>(role);
  const Balance balance = balance_of(order, statement.all, begin);
  return {gain_percent(balance), pays(balance) ? 1u : 0u};
} catch (const std::exception&) {  // no memory
  return {};
}

// Where the rows of the members begin in what rank 0 receives, in bytes.
struct Rows {
  std::vector<int> sizes, begins;
  std::vector<PartnerBytes> partners;
};

bool make_room(Rows& rows, const std::vector<MemberFacts>& all) noexcept try {
  std::size_t sum = 0;
  for (const MemberFacts& facts : all) {
    rows.begins.push_back(static_cast<int>(sum * sizeof(PartnerBytes)));
    rows.sizes.push_back(static_cast<int>(facts.partners * sizeof(PartnerBytes)));
    sum += facts.partners;
  }
  rows.partners.resize(sum);
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace

std::optional<ReorderStatement> own_statement(std::uint32_t comm, int size) noexcept try {
  if (!matrix_choice.peers) return std::nullopt;
  std::optional<MemberRanks> found = members(comm);
  if (!found || found->rank < 0 || found->world.size() != static_cast<std::size_t>(size)) return std::nullopt;
  ReorderStatement statement{};
  statement.members = std::move(*found);
  statement.are_inside_known = pml_hook_outcome() == "measured";
  const Traffic traffic = traffic_since_mark(statement.members, statement.are_inside_known);
  state_partners(traffic.bytes, static_cast<std::size_t>(statement.members.rank), statement);
  static const CpuPlace place = place_of(job.cpus);
  statement.facts.communicating_ns = TickScale::since_start().ns(traffic.communicating);
  statement.facts.node = own_node();
  statement.facts.socket = place.socket;
  statement.facts.numa = place.numa;
  statement.facts.complex = place.complex;
  if (statement.members.rank == 0) {
    statement.all.resize(statement.members.world.size());
    statement.new_ranks.resize(statement.all.size());
  }
  return statement;
} catch (const std::exception&) {  // no memory
  return std::nullopt;
}

ReorderPlan agreed_plan(MPI_Comm own, ReorderStatement& statement) noexcept {
  const Ticks begin = now();
  const bool is_root = statement.members.rank == 0;
  constexpr int facts_size = sizeof(MemberFacts);
  if (api.Gather(&statement.facts, facts_size, api.byte, statement.all.data(), facts_size, api.byte, 0, own) !=
      MPI_SUCCESS)
    return {};
  Rows rows;
  char has_room = 1;
  if (is_root) has_room = make_room(rows, statement.all) ? 1 : 0;
  if (api.Bcast(&has_room, 1, api.byte, 0, own) != MPI_SUCCESS || has_room == 0) return {};
  const int row_size = static_cast<int>(statement.partners.size() * sizeof(PartnerBytes));
  if (api.Gatherv(statement.partners.data(), row_size, api.byte, rows.partners.data(), rows.sizes.data(),
                  rows.begins.data(), api.byte, 0, own) != MPI_SUCCESS)
    return {};
  Verdict verdict;
  if (is_root) verdict = searched(statement, rows.partners, begin);
  if (api.Bcast(&verdict, sizeof verdict, api.byte, 0, own) != MPI_SUCCESS) return {};
  ReorderPlan plan;
  plan.gain_percent = verdict.gain_percent;
  if (verdict.is_better == 0) return plan;
  constexpr int rank_size = sizeof(std::int32_t);
  plan.is_better = api.Scatter(statement.new_ranks.data(), rank_size, api.byte, &plan.new_rank, rank_size, api.byte, 0,
                               own) == MPI_SUCCESS;
  return plan;
}

}  // namespace commlens
