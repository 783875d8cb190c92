// SPDX-License-Identifier: Apache-2.0
#include "core/collect/collect.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "core/base/say.h"
#include "core/collect/agree.h"
#include "core/collect/package.h"
#include "core/profile/profile.h"
#include "core/profile/summary.h"

namespace commlens {
namespace {

// What every rank must know before it packs its counters.
struct Outline {
  bool in_session = false, summary = false, unwanted = false;
  unsigned long aggregators = 0;
  std::uint64_t rows = 0;  // cells of all ranks
  SlicePlan slices;
};

// True if the profile goes to /dev/null.
bool is_unwanted(const CollectOptions& options) { return out::target_of(options.name()) == out::Target::nothing; }

bool outline(Group& group, const CollectOptions& options, const Counted* counted, Outline& result) {
  enum : std::size_t { in_session, summary, unwanted, aggregators, cells, first_of_slices };
  std::vector<std::uint64_t> values(first_of_slices + SliceRows::size);
  values[in_session] = options.in_session ? 1 : 0;
  values[summary] = options.summary ? 1 : 0;
  values[unwanted] = group.rank() == 0 && counted != nullptr && is_unwanted(options) ? 1 : 0;
  values[aggregators] = options.aggregators;
  SliceRows slices;
  if (counted != nullptr) {
    const CountedRegions& regions = counted->regions;
    values[cells] = counted->cells.size() + regions.times.size() + regions.loops.size() + regions.values.size();
    slices = SliceRows(*counted);
  }
  std::copy(slices.numbers.begin(), slices.numbers.end(), values.begin() + first_of_slices);
  const auto rows_in = [](const std::vector<std::uint64_t>& from) {
    SliceRows rows;
    std::copy(from.begin() + first_of_slices, from.end(), rows.numbers.begin());
    return rows;
  };
  const auto fold = [&](std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& one) {
    SliceRows rows = rows_in(sum);
    rows.add(rows_in(one));
    for (const std::size_t i : {in_session, summary, unwanted, aggregators}) sum[i] = std::max(sum[i], one[i]);
    sum[cells] += one[cells];
    std::copy(rows.numbers.begin(), rows.numbers.end(), sum.begin() + first_of_slices);
  };
  if (!everywhere(group, values, fold)) return false;
  result.in_session = values[in_session] != 0;
  result.summary = values[summary] != 0;
  result.unwanted = values[unwanted] != 0;
  result.aggregators = static_cast<unsigned long>(values[aggregators]);
  result.rows = values[cells];
  result.slices = rows_in(values).within(slice_rows_for(result.rows));
  return true;
}

// Receives the packages of the other ranks of the block.  Returns false if communication failed.
bool gather(Group& group, int end, Profile& profile, bool& complete) {
  std::vector<char> bytes;
  for (int rank = group.rank() + 1; rank < end; ++rank) {
    const Passed passed = take(group, rank, bytes);
    if (passed == Passed::broken) return false;
    try {
      complete = passed == Passed::yes && profile.add(bytes.data(), bytes.size()) && complete;
    } catch (const std::bad_alloc&) {
      complete = false;
    }
  }
  return true;
}

// Concatenates the bytes of all aggregators at rank 0, in the order of ranks.  Returns false if communication failed.
bool to_root(Group& group, std::vector<char>& bytes, bool& complete) {
  const Tree tree = tree_of(group);
  std::vector<char> more;
  for (const int child : tree.children) {
    const Passed passed = take(group, child, more);
    if (passed == Passed::broken) return false;
    try {
      bytes.insert(bytes.end(), more.begin(), more.end());
    } catch (const std::bad_alloc&) {
      complete = false;
    }
    complete = complete && passed == Passed::yes;
  }
  return tree.parent < 0 || put(group, tree.parent, bytes) != Passed::broken;
}

// Serialises what one aggregator contributes to the facts about the whole run.
std::vector<char> written(const out::Totals& totals) {
  WireWriter out;
  out.number(totals.elapsed);
  out.number(totals.ranks);
  out.number(totals.slice_ns);
  out.number(totals.slices_folded ? 1 : 0);
  out.number(totals.nodes.size());
  for (const std::string& node : totals.nodes) out.text(node);
  write_oddities(out, totals.oddities);
  return out.bytes();
}

out::Totals totals_from(const std::vector<char>& bytes) {
  out::Totals totals;
  WireReader in(bytes.data(), bytes.size());
  for (Ns elapsed = in.number(); in.ok(); elapsed = in.number()) {
    totals.elapsed = std::max(totals.elapsed, elapsed);
    totals.ranks += in.number();
    totals.slice_ns = std::max<Ns>(totals.slice_ns, in.number());
    totals.slices_folded = in.number() != 0 || totals.slices_folded;
    for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) totals.nodes.insert(in.text());
    read_oddities(in, totals.oddities);
  }
  return totals;
}

std::vector<char> written(const out::Shard& shard) {
  WireWriter out;
  for (const std::uint64_t n : {shard.number, shard.first_rank, shard.ranks, shard.cells, shard.bytes, shard.crc32})
    out.number(n);
  out.text(shard.file);
  out.text(shard.error);
  return out.bytes();
}

std::vector<out::Shard> shards_from(const std::vector<char>& bytes) {
  std::vector<out::Shard> shards;
  WireReader in(bytes.data(), bytes.size());
  while (true) {
    out::Shard shard;
    for (std::uint64_t* const n :
         {&shard.number, &shard.first_rank, &shard.ranks, &shard.cells, &shard.bytes, &shard.crc32})
      *n = in.number();
    shard.file = in.text();
    shard.error = in.text();
    if (!in.ok()) return shards;
    shards.push_back(std::move(shard));
  }
}

// What rank 0 sends to all aggregators before they write; empty if there is nothing to write.
struct Orders {
  std::string directory;
  out::Meta meta;
  out::Totals totals;
  std::vector<char> catalogue;
};

std::vector<char> written(const Orders& orders) {
  WireWriter out;
  out.text(orders.directory);
  out.pairs(orders.meta);
  const std::vector<char> totals = written(orders.totals);
  out.text({totals.begin(), totals.end()});
  out.text({orders.catalogue.begin(), orders.catalogue.end()});
  return out.bytes();
}

bool orders_from(const std::vector<char>& bytes, Orders& orders) {
  WireReader in(bytes.data(), bytes.size());
  orders.directory = in.text();
  orders.meta = in.pairs();
  const std::string totals = in.text(), catalogue = in.text();
  orders.totals = totals_from({totals.begin(), totals.end()});
  orders.catalogue.assign(catalogue.begin(), catalogue.end());
  return in.ok() && !bytes.empty();
}

void say_stored(const CollectOptions& options, const Profile::Oddities& oddities, std::uint64_t ranks,
                const std::string& path, const std::string& error) {
  for (const auto& [kind, oddity] : oddities) {
    const std::string others = oddity.ranks == 1 ? "" : " (and " + std::to_string(oddity.ranks - 1) + " more ranks)";
    say("rank %d%s: %s", oddity.rank, others.c_str(), oddity.text.c_str());
  }
  if (!error.empty()) {
    say("%s; the profile is in %s", error.c_str(), path.c_str());
  } else if (!options.quiet) {
    say("profile of %llu rank%s in %s", static_cast<unsigned long long>(ranks), ranks == 1 ? "" : "s", path.c_str());
  }
}

void say_unwanted(const CollectOptions& options) {
  if (options.quiet) return;
  const std::string name = options.name();  // /dev/null or a link to it
  say("no profile is written: %s is /dev/null", name == "/dev/null" ? "COMMLENS_OUTPUT" : name.c_str());
}

const char kept[] = "What was counted is kept on the nodes: commlens recover";

// Returns the blocks of ranks that are missing: "4-7, 12-15".
std::string blocks_of(const std::vector<out::Shard>& shards) {
  constexpr int enough = 4;
  std::string text;
  int named = 0;
  for (const out::Shard& shard : shards) {
    if (shard.error.empty() || ++named > enough) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(shard.first_rank);
    if (shard.ranks > 1) text += "-" + std::to_string(shard.first_rank + shard.ranks - 1);
  }
  return named > enough ? text + " and " + std::to_string(named - enough) + " more blocks" : text;
}

// On rank 0, after all aggregators have written: writes the index, which lists the shards.  Returns whether it exists
// now.
bool write_index(const CollectOptions& options, const Orders& orders, const Profile& profile,
                 const std::vector<out::Shard>& shards, int count, const std::string& elsewhere) {
  int written = 0;
  std::uint64_t ranks = 0;
  std::string error;
  for (const out::Shard& shard : shards) {
    if (shard.error.empty()) {
      ++written;
      ranks += shard.ranks;
    } else if (error.empty()) {
      error = shard.error;
    }
  }
  if (error.empty()) error = "nothing is known of them";
  if (written == 0) {
    say("no profile: %s. %s", error.c_str(), kept);
    return false;
  }
  if (written < count) {
    say("%d of %d files are missing in the profile, of ranks %s: %s. %s", count - written, count,
        blocks_of(shards).c_str(), error.c_str(), kept);
  }
  const out::Stored stored = out::store_index(profile, orders.meta, shards, orders.directory, options.mode);
  if (stored.path.empty()) {
    say("%s; commlens reads the files in %s even so", stored.error.c_str(), orders.directory.c_str());
  } else {
    say_stored(options, orders.totals.oddities, ranks, orders.directory, elsewhere);
  }
  return !stored.path.empty();
}

bool write_file(const CollectOptions& options, int ranks, const Profile& profile, const out::Totals& totals,
                out::Phases phases) {
  phases.agreed = options.clock();
  const out::Meta meta = out::with_totals(options.meta(), totals, ranks);
  const out::Stored stored = out::store(profile, meta, options.name(), phases, options.mode);
  if (stored.path.empty()) {
    say("no profile: %s. %s", stored.error.c_str(), options.kept.empty() ? kept : options.kept.c_str());
    return false;
  }
  say_stored(options, totals.oddities, totals.ranks, stored.path, stored.error);
  return true;
}

// With several aggregators: they agree on global numbers, and each writes the shard of its block.
bool write_shards(Group& leaders, const CollectOptions& options, int ranks, Profile& profile, out::Phases phases) {
  const bool is_root = leaders.rank() == 0;
  const Dictionary::Size own = profile.dictionary.size();
  const Agreed agreed = agree(leaders, profile.dictionary);
  if (agreed == Agreed::broken) return false;
  bool complete = true;
  std::vector<char> bytes = written(out::Totals(profile));
  if (!to_root(leaders, bytes, complete)) return false;

  Orders orders;
  std::string elsewhere;  // why the directory is not where the user wanted it
  if (is_root) {
    try {
      if (agreed == Agreed::no_memory) throw std::bad_alloc();
      orders.totals = totals_from(bytes);
      orders.meta = out::with_totals(options.meta(), orders.totals, ranks);
      orders.catalogue = profile.dictionary.catalogue().packed();
      orders.directory = out::make_directory(options.name(), options.mode, elsewhere);
      if (orders.directory.empty()) say("no profile: %s. %s", elsewhere.c_str(), kept);
      bytes = orders.directory.empty() ? std::vector<char>() : written(orders);
    } catch (const std::bad_alloc&) {
      say("no profile: no memory for what the ranks have in common. %s", kept);
      bytes.clear();
    }
  }
  if (!from_root(leaders, bytes)) return false;

  out::Shard shard;
  shard.number = static_cast<std::uint64_t>(leaders.rank());
  shard.first_rank = static_cast<std::uint64_t>(profile.dictionary.block().first);
  bool is_stored = false;
  const bool has_orders = !bytes.empty();
  try {
    Catalogue catalogue;
    if (has_orders && (is_root || orders_from(bytes, orders)) && catalogue.unpack(orders.catalogue)) {
      phases.agreed = options.clock();
      profile.slice_ns = orders.totals.slice_ns;
      profile.slices_folded = orders.totals.slices_folded;
      profile.settle(std::move(catalogue), own);
      is_stored = out::store_shard(profile, orders.meta, orders.directory, phases, options.mode, shard);
    } else {
      shard.error = "no memory for what the ranks have in common";
    }
    bytes = written(shard);
  } catch (const std::bad_alloc&) {
    bytes.clear();
  }
  if (!to_root(leaders, bytes, complete)) return false;
  // No rank removes its arena before the index exists.  If the job is killed before that, `commlens recover` can still
  // recover all of it.
  std::vector<char> has_index;
  try {
    if (is_root && has_orders && write_index(options, orders, profile, shards_from(bytes), leaders.size(), elsewhere)) {
      has_index.assign(1, 1);
    }
  } catch (const std::exception& e) {  // the other leaders wait for the answer
    say("no index of the profile: %s. %s", e.what(), kept);
  }
  return from_root(leaders, has_index) && !has_index.empty() && is_stored;
}

}  // namespace

bool write_file(const CollectOptions& options, int ranks, Profile& profile, out::Phases phases) {
  if (is_unwanted(options)) {
    say_unwanted(options);
    return true;
  }
  profile.world_size = ranks;
  profile.finish();
  return write_file(options, ranks, profile, out::Totals(profile), phases);
}

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

namespace {

// Adds up the summaries of the subtrees.  Returns false if communication failed.
bool sum_up(Group& group, Summary& summary, bool& complete) {
  const Tree tree = tree_of(group);
  std::vector<char> bytes;
  for (const int child : tree.children) {
    const Passed passed = take(group, child, bytes);
    if (passed == Passed::broken) return false;
    try {
      complete = passed == Passed::yes && summary.add(bytes) && complete;
    } catch (const std::bad_alloc&) {
      complete = false;
    }
  }
  if (tree.parent < 0) return true;
  try {
    bytes = summary.packed();
  } catch (const std::bad_alloc&) {
    bytes.clear();
  }
  return put(group, tree.parent, bytes) != Passed::broken;
}

// On rank 0, after all summaries were added: writes the profile.
bool write_summary(const CollectOptions& options, int ranks, Profile& profile, const Summary& summary,
                   out::Phases phases) {
  profile.is_summary = true;
  profile.ranks.clear();
  profile.rows.clear();
  profile.region_rows.clear();
  profile.loop_rows.clear();
  profile.loop_bins.clear();
  profile.quantity_rows.clear();
  profile.finish();
  profile.lines = summary.lines(profile);
  for (Catalogue::KeyFacts& key : profile.keys) key.calls = key.bytes_sent = key.bytes_received = key.noncontiguous = 0;
  out::Totals totals(profile);
  totals.nodes = summary.nodes();
  totals.oddities = summary.oddities();
  if (const Spread* const app = summary.of_run(Profile::Counter::app); app != nullptr) {
    totals.elapsed = app->max;
    totals.ranks = app->ranks;
  }
  return write_file(options, ranks, profile, totals, phases);
}

// Collects a summary: all ranks merge their data along one tree.
Collected collect_summary(Group& group, const CollectOptions& options, out::Phases phases, std::vector<char>& own) {
  Profile profile;
  profile.world_size = group.size();
  profile.dictionary.fold();
  Summary summary;
  Dictionary of_all;
  of_all.fold();
  bool complete = true;
  try {
    complete = profile.add(own.data(), own.size());
    of_all = profile.dictionary;
  } catch (const std::bad_alloc&) {
    complete = false;
  }
  own = {};
  // Ranks must agree on families before they add up the counters of a family.
  const Agreed agreed = agree(group, of_all);
  if (agreed == Agreed::broken) return Collected::not_stored;
  std::vector<char> settled;
  try {
    if (group.rank() == 0) settled = of_all.settled_sites();
  } catch (const std::bad_alloc&) {
    complete = false;
  }
  if (!from_root(group, settled)) return Collected::not_stored;
  try {
    complete = profile.dictionary.settle_sites(settled) && complete;
    summary = Summary(profile);
  } catch (const std::bad_alloc&) {
    complete = false;
  }
  if (!sum_up(group, summary, complete)) return Collected::not_stored;
  phases.gathered = options.clock();
  profile.dictionary = std::move(of_all);

  std::uint64_t is_whole = complete && agreed == Agreed::yes ? 1 : 0;
  std::vector<std::uint64_t> all{is_whole};
  const auto least = [](std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& one) {
    sum[0] = std::min(sum[0], one[0]);
  };
  if (!everywhere(group, all, least)) return Collected::not_stored;
  std::vector<char> answer;
  if (group.rank() == 0) {
    bool is_stored = false;
    try {
      if (all[0] == 0) say("the data of some ranks is missing, for want of memory. %s", kept);
      is_stored = write_summary(options, group.size(), profile, summary, phases);
    } catch (const std::exception& e) {
      say("no profile: %s", e.what());
    }
    answer.assign(1, is_stored && all[0] != 0 ? 1 : 0);
  }
  if (!from_root(group, answer)) return Collected::not_stored;
  return !answer.empty() && answer[0] != 0 ? Collected::stored : Collected::not_stored;
}

}  // namespace

Collected collect_together(Group& group, const CollectOptions& options) {
  std::vector<char> own;
  Outline plan;
  bool is_stored = false;
  {
    Counted counted;
    bool has_counted = false;
    try {
      counted = options.counted();
      has_counted = true;
    } catch (const std::exception& e) {
      say("rank %d: cannot collect: %s", group.rank(), e.what());
    }
    if (!outline(group, options, has_counted ? &counted : nullptr, plan)) return Collected::not_stored;
    if (plan.in_session) return Collected::too_early;
    if (plan.unwanted) {
      if (group.rank() == 0) say_unwanted(options);
      return Collected::stored;
    }
    const Clocked begin{options.begin, options.clock};
    try {
      if (has_counted) own = plan.summary ? packed_for_summary(counted, begin) : packed(counted, begin, plan.slices);
    } catch (const std::exception& e) {
      say("rank %d: cannot collect: %s", group.rank(), e.what());
    }
  }
  out::Phases phases{options.begin, options.clock()};
  phases.clock = options.clock;
  if (plan.summary) return collect_summary(group, options, phases, own);
  const int block = block_size(group.size(), plan.aggregators, plan.rows);
  const int leader = group.rank() / block * block;
  char answer = 0;
  if (group.rank() != leader) {
    const Passed passed = put(group, leader, own);
    own = {};
    if (passed == Passed::broken || !group.receive(leader, &answer, 1)) return Collected::not_stored;
    return passed == Passed::yes && answer != 0 ? Collected::stored : Collected::not_stored;
  }

  Profile profile;
  profile.world_size = group.size();
  bool complete = true;
  try {
    complete = profile.add(own.data(), own.size());
  } catch (const std::bad_alloc&) {
    complete = false;
  }
  own = {};
  const int end = std::min(leader + block, group.size());
  if (!gather(group, end, profile, complete)) return Collected::not_stored;
  phases.gathered = options.clock();
  if (!complete) say("rank %d: the data of some ranks is missing; the profile has the others", group.rank());
  try {
    if (block >= group.size()) {
      is_stored = write_file(options, group.size(), profile, phases);
    } else {
      Leaders leaders(group, block);
      is_stored = write_shards(leaders, options, group.size(), profile, phases);
    }
  } catch (const std::exception& e) {
    say("rank %d: no profile: %s", group.rank(), e.what());
  }
  answer = is_stored && complete ? 1 : 0;
  for (int rank = leader + 1; rank < end; ++rank) group.send(rank, &answer, 1);
  return answer != 0 ? Collected::stored : Collected::not_stored;
}

}  // namespace commlens
