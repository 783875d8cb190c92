// SPDX-License-Identifier: Apache-2.0
#include "core/collect/collect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "core/base/say.h"
#include "core/collect/collect_summary.h"
#include "core/collect/package.h"
#include "core/collect/shards.h"
#include "core/profile/profile.h"

namespace commlens {
namespace {

// The facts that every rank needs before it packs its counters.
struct Outline {
  bool in_session = false, summary = false, unwanted = false, impossible = false;
  unsigned long aggregators = 0;
  std::uint64_t rows = 0;  // that all ranks send, without slices and samples
  SlicePlan slices;
  SampleLimits samples;
};

// The values that ranks exchange for the outline.
enum : std::size_t {
  in_session,
  summary,
  unwanted,
  impossible,
  aggregators,
  strata,
  channels,
  world,
  cells,
  peers,
  first_of_slices
};
using Values = std::array<std::uint64_t, first_of_slices + SliceRows::size>;

SliceRows slices_in(const Values& values) {
  SliceRows rows;
  std::copy(values.begin() + first_of_slices, values.end(), rows.numbers.begin());
  return rows;
}

void put_slices(Values& values, const SliceRows& rows) {
  std::copy(rows.numbers.begin(), rows.numbers.end(), values.begin() + first_of_slices);
}

void fold(Values& sum, const Values& one) {
  for (const std::size_t i : {in_session, summary, unwanted, impossible, aggregators, strata, channels, world})
    sum[i] = std::max(sum[i], one[i]);
  sum[cells] += one[cells];
  sum[peers] += one[peers];
  SliceRows rows = slices_in(sum);
  rows.add(slices_in(one));
  put_slices(sum, rows);
}

// has_room: this rank has memory to merge the counters of others.
Values values_of(const Group& group, Contribution& own, bool has_room) {
  Values values{};
  SliceRows slices;
  try {
    values[unwanted] = group.rank() == 0 && own.counted && is_unwanted(own.destination) ? 1 : 0;
    if (own.counted) slices = SliceRows(*own.counted);
  } catch (const std::bad_alloc&) {
    own.counted.reset();
  }
  values[impossible] = has_room ? 0 : 1;
  values[in_session] = own.in_session ? 1 : 0;
  values[summary] = own.summary ? 1 : 0;
  values[aggregators] = own.aggregators;
  if (group.rank() == 0 && own.world != nullptr) values[world] = *own.world;
  if (own.counted) {
    const CountedRegions& regions = own.counted->regions;
    values[cells] = own.counted->cells.size() + regions.times.size() + regions.loops.size() + regions.values.size();
    for (const auto& [of, values_of] : regions.series) values[cells] += values_of.size();
    values[cells] += own.counted->datatypes.sums.size() + own.counted->events.size();
    for (const auto& [number, thread] : own.counted->threads)
      values[cells] += thread.cells.size() + thread.regions.times.size();
    values[peers] = own.counted->peers.size();
    values[strata] = own.counted->samples.size();
    values[channels] = own.counted->messages.size();
  }
  put_slices(values, slices);
  return values;
}

// Collective: replaces the values of this rank by those of all.  no: the ranks cannot send messages.
CollectiveResult fold_all(Group& group, Values& values) {
  const char* all = nullptr;
  const CollectiveResult exchanged = group.exchange(values.data(), sizeof values, all);
  if (exchanged == CollectiveResult::broken) return CollectiveResult::broken;
  if (exchanged == CollectiveResult::no) {
    if (!group.connect()) return CollectiveResult::no;
    return everywhere(group, values, fold) ? CollectiveResult::yes : CollectiveResult::broken;
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    Values one;
    std::memcpy(one.data(), all + static_cast<std::size_t>(rank) * sizeof one, sizeof one);
    if (rank == 0) {
      values = one;
    } else {
      fold(values, one);
    }
  }
  return CollectiveResult::yes;
}

// Returns the outline from the values of all ranks.  Also stores the id of the world, and the time waited for late
// ranks, in `own`.
Outline outline(const Group& group, Contribution& own, const Values& values) {
  Outline result;
  result.in_session = values[in_session] != 0;
  result.summary = values[summary] != 0;
  result.unwanted = values[unwanted] != 0;
  result.impossible = values[impossible] != 0;
  result.aggregators = static_cast<unsigned long>(values[aggregators]);
  result.rows = values[cells] + values[peers];
  result.samples = limits_for(static_cast<std::uint64_t>(group.size()), values[strata], values[channels]);
  result.slices = slices_in(values).within(slice_rows_for(values[cells]));
  own.begin += group.waited();  // waiting for late ranks is not our overhead
  if (own.counted) own.counted->facts.own_wait_ns = own.counted->scale.ns(group.waited());
  if (own.world == nullptr) return result;
  *own.world = values[world];
  if (own.counted) own.counted->facts.world = values[world];
  return result;
}

// Returns the package of this rank, and frees its counters.  Empty, after a message, if there is no memory.
std::vector<char> package(const Group& group, Contribution& own, const Outline& plan) {
  const std::optional<Counted> counted = std::exchange(own.counted, std::nullopt);
  const Clocked begin{own.begin, own.clock};
  try {
    if (!counted) return {};
    return plan.summary ? packed_for_summary(*counted, begin) : packed(*counted, begin, plan.slices, plan.samples);
  } catch (const std::exception& e) {
    say("rank %d: cannot collect the counters: %s", group.rank(), e.what());
    return {};
  }
}

// Gives the package to the aggregator of the block and waits until it is stored.
CollectResult hand_over(Group& group, int leader, std::vector<char> package) {
  const TransferResult passed = put(group, leader, package);
  package = {};
  char answer = 0;
  if (passed == TransferResult::broken || !group.receive(leader, &answer, 1)) return CollectResult::not_stored;
  return passed == TransferResult::yes && answer != 0 ? CollectResult::stored : CollectResult::not_stored;
}

bool add_to(Profile& profile, std::string_view package) {
  try {
    return profile.add(package.data(), package.size());
  } catch (const std::exception&) {
    return false;
  }
}

// On an aggregator: merges the packages of its block.  Returns false if communication failed.
bool gather(Group& group, int end, std::vector<char> own, Profile& profile, bool& complete) {
  complete = add_to(profile, {own.data(), own.size()});
  own = {};
  std::vector<char> bytes;
  for (int rank = group.rank() + 1; rank < end; ++rank) {
    const TransferResult passed = take(group, rank, bytes);
    if (passed == TransferResult::broken) return false;
    complete = passed == TransferResult::yes && add_to(profile, {bytes.data(), bytes.size()}) && complete;
  }
  return true;
}

// On an aggregator: a single one writes the profile, several agree and write a shard each.
bool write(Group& group, int block, const Destination& destination, Profile& profile, const out::Phases& phases) try {
  if (block >= group.size()) return write_file(destination, group.size(), profile, phases);
  Leaders leaders(group, block);
  return write_shards(leaders, destination, group.size(), profile, phases);
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", group.rank(), e.what());
  return false;
}

void say_incomplete(const Group& group) {
  say("rank %d: the data of some ranks is missing; the profile contains the others", group.rank());
}

// Collective, after gather(): rank 0 merges the packages of all ranks and writes the profile.
CollectResult write_gathered(Group& group, const Destination& destination, Profile& profile, out::Phases phases) {
  char answer = 0;
  if (group.rank() == 0) {
    profile.world_size = group.size();
    bool complete = true;
    for (int rank = 0; rank < group.size(); ++rank) complete = add_to(profile, group.gathered(rank)) && complete;
    phases.gathered = phases.clock();
    if (!complete) say_incomplete(group);
    answer = write(group, group.size(), destination, profile, phases) && complete ? 1 : 0;
  }
  return group.broadcast(answer) && answer != 0 ? CollectResult::stored : CollectResult::not_stored;
}

}  // namespace

// Writing a row costs a rank about 1.4 us.  A file costs the file system about 0.3 ms, and it serves one file after the
// other.  With A aggregators, rows * 1.4 us / A + A * 0.3 ms is smallest where A is the square root of rows / 214.  One
// file is easier to handle, as long as writing it takes about a second.  Measured by bench/scale.py,
// docs/evidence/scale.md.
int block_size(int ranks, unsigned long aggregators, std::uint64_t rows) {
  constexpr std::uint64_t rows_of_one_file = 1'000'000;
  constexpr double rows_that_cost_a_file = 214;
  if (aggregators == 0) {
    aggregators = rows <= rows_of_one_file
                      ? 1
                      : static_cast<unsigned long>(std::sqrt(static_cast<double>(rows) / rows_that_cost_a_file));
  }
  const auto wanted = static_cast<int>(std::min<unsigned long>(aggregators, static_cast<unsigned long>(ranks)));
  return (ranks + wanted - 1) / wanted;
}

CollectResult collect_together(Group& group, Contribution own) {
  // Collect.  Allocates now what merging needs: after the first message, a rank without memory would leave the others
  // waiting.
  std::optional<SummaryParts> parts;
  try {
    parts.emplace();
  } catch (const std::bad_alloc&) {
    say("rank %d: no memory to collect the counters", group.rank());
  }
  Values values = values_of(group, own, parts.has_value());
  switch (fold_all(group, values)) {
    case CollectiveResult::yes: break;
    case CollectiveResult::no: return CollectResult::no_messages;
    case CollectiveResult::broken: return CollectResult::not_begun;
  }
  const Outline plan = outline(group, own, values);
  if (plan.in_session) return CollectResult::too_early;
  if (plan.impossible) return CollectResult::not_stored;
  if (plan.unwanted) {
    if (group.rank() == 0) say_unwanted(own.destination);
    return CollectResult::stored;
  }
  std::vector<char> bytes = package(group, own, plan);
  out::Phases phases{own.begin, own.clock()};
  phases.clock = own.clock;
  const int block = block_size(group.size(), plan.aggregators, plan.rows);
  if (!plan.summary && block >= group.size()) {
    const CollectiveResult gathered = group.gather(bytes);
    if (gathered == CollectiveResult::broken) return CollectResult::not_stored;
    if (gathered == CollectiveResult::yes) return write_gathered(group, own.destination, parts->profile, phases);
  }
  if (!group.connect()) return CollectResult::no_messages;
  if (plan.summary) {
    const bool is_stored = collect_summary(group, own.destination, phases, std::move(bytes), *parts);
    return is_stored ? CollectResult::stored : CollectResult::not_stored;
  }

  // Gather.
  const int leader = group.rank() / block * block;
  if (group.rank() != leader) return hand_over(group, leader, std::move(bytes));
  const int end = std::min(leader + block, group.size());
  Profile& profile = parts->profile;
  profile.world_size = group.size();
  bool complete = true;
  if (!gather(group, end, std::move(bytes), profile, complete)) return CollectResult::not_stored;
  phases.gathered = own.clock();
  if (!complete) say_incomplete(group);

  // Agree, write and store.
  const bool is_stored = write(group, block, own.destination, profile, phases);
  const char answer = is_stored && complete ? 1 : 0;
  for (int rank = leader + 1; rank < end; ++rank) group.send(rank, &answer, 1);
  return answer != 0 ? CollectResult::stored : CollectResult::not_stored;
}

}  // namespace commlens
