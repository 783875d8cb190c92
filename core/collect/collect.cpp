// SPDX-License-Identifier: Apache-2.0
#include "core/collect/collect.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "core/cold/say.h"
#include "core/collect/agree.h"
#include "core/collect/package.h"
#include "core/collect/profile.h"

namespace commlens {
namespace {

// What all have to know before they pack.
struct Outline {
  bool in_session = false;
  std::uint64_t rows = 0;  // cells of all ranks
  SlicePlan slices;
};

bool outline(Group& group, const Terms& terms, const Counted* counted, Outline& result) {
  std::vector<std::uint64_t> values(2 + SliceRows::size);
  values[0] = terms.in_session ? 1 : 0;
  SliceRows slices;
  if (counted != nullptr) {
    values[1] = counted->cells.size();
    slices = SliceRows(*counted);
  }
  std::copy(slices.numbers.begin(), slices.numbers.end(), values.begin() + 2);
  const auto rows_in = [](const std::vector<std::uint64_t>& from) {
    SliceRows rows;
    std::copy(from.begin() + 2, from.end(), rows.numbers.begin());
    return rows;
  };
  const auto fold = [&](std::vector<std::uint64_t>& sum, const std::vector<std::uint64_t>& one) {
    SliceRows rows = rows_in(sum);
    rows.add(rows_in(one));
    sum[0] += one[0];
    sum[1] += one[1];
    std::copy(rows.numbers.begin(), rows.numbers.end(), sum.begin() + 2);
  };
  if (!everywhere(group, values, fold)) return false;
  result.in_session = values[0] != 0;
  result.rows = values[1];
  result.slices = rows_in(values).within(slice_rows_for(values[1]));
  return true;
}

// The packages of the other ranks of the block; false when nobody can be sure of anything any more.
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

// Bytes that every aggregator has, joined in the order of ranks at rank 0.
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

// What one aggregator brings to the facts of the whole run.
std::vector<char> written(const out::Totals& totals) {
  WireWriter out;
  out.number(totals.elapsed);
  out.number(totals.ranks);
  out.number(totals.slice_ns);
  out.number(totals.slices_folded ? 1 : 0);
  out.number(totals.nodes.size());
  for (const std::string& node : totals.nodes) out.text(node);
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

// What rank 0 tells all aggregators before they write; nothing when there is nothing to write.
struct Orders {
  std::string directory;
  out::Meta meta;
  out::Totals totals;
  std::vector<char> catalogue;
};

std::vector<char> written(const Orders& orders) {
  WireWriter out;
  out.text(orders.directory);
  out.number(orders.meta.size());
  for (const auto& [key, value] : orders.meta) {
    out.text(key);
    out.text(value);
  }
  const std::vector<char> totals = written(orders.totals);
  out.text({totals.begin(), totals.end()});
  out.text({orders.catalogue.begin(), orders.catalogue.end()});
  return out.bytes();
}

bool orders_from(const std::vector<char>& bytes, Orders& orders) {
  WireReader in(bytes.data(), bytes.size());
  orders.directory = in.text();
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    std::string key = in.text();
    orders.meta.emplace_back(std::move(key), in.text());
  }
  const std::string totals = in.text(), catalogue = in.text();
  orders.totals = totals_from({totals.begin(), totals.end()});
  orders.catalogue.assign(catalogue.begin(), catalogue.end());
  return in.ok() && !bytes.empty();
}

void say_stored(const Terms& terms, std::uint64_t ranks, const std::string& path, const std::string& error) {
  if (!error.empty()) {
    say("%s; the profile is in %s", error.c_str(), path.c_str());
  } else if (!terms.quiet) {
    say("profile of %llu ranks in %s", static_cast<unsigned long long>(ranks), path.c_str());
  }
}

const char kept[] = "What was counted is kept on the nodes: commlens recover";

// On rank 0, when all aggregators have written: the file that says what belongs together.
void write_index(const Terms& terms, const Orders& orders, const Profile& profile,
                 const std::vector<out::Shard>& shards, int count) {
  std::size_t written = 0;
  for (const out::Shard& shard : shards) {
    written += shard.error.empty() ? 1 : 0;
    if (!shard.error.empty()) {
      say("ranks %llu and following: %s. %s", static_cast<unsigned long long>(shard.first_rank), shard.error.c_str(),
          kept);
    }
  }
  if (written < static_cast<std::size_t>(count)) {
    say("%zu of %d files of the profile are missing; it has the ranks of the others",
        static_cast<std::size_t>(count) - written, count);
  }
  const out::Stored stored = out::store_index(profile, orders.meta, shards, orders.directory);
  if (stored.path.empty()) {
    say("%s; commlens reads the files in %s even so", stored.error.c_str(), orders.directory.c_str());
  } else {
    say_stored(terms, orders.totals.ranks, orders.directory, "");
  }
}

// Where there are several: all come to the same numbers, and each writes its block.
bool write_shards(Group& leaders, const Terms& terms, int ranks, Profile& profile, out::Phases phases) {
  const bool is_root = leaders.rank() == 0;
  const Dictionary::Size own = profile.dictionary.size();
  const Agreed agreed = agree(leaders, profile.dictionary);
  if (agreed == Agreed::broken) return false;
  bool complete = true;
  std::vector<char> bytes = written(out::Totals(profile));
  if (!to_root(leaders, bytes, complete)) return false;

  Orders orders;
  if (is_root) {
    try {
      if (agreed == Agreed::no_memory) throw std::bad_alloc();
      orders.totals = totals_from(bytes);
      orders.meta = out::with_totals(terms.meta(), orders.totals, ranks);
      orders.catalogue = profile.dictionary.catalogue().packed();
      std::string error;
      orders.directory = out::make_directory(terms.name(), error);
      if (!error.empty()) say("%s", error.c_str());
      bytes = orders.directory.empty() ? std::vector<char>() : written(orders);
    } catch (const std::bad_alloc&) {
      say("no memory for what the ranks have in common");
      bytes.clear();
    }
    if (bytes.empty()) say("no profile. %s", kept);
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
      phases.agreed = terms.clock();
      profile.slice_ns = orders.totals.slice_ns;
      profile.slices_folded = orders.totals.slices_folded;
      profile.settle(std::move(catalogue), own);
      is_stored = out::store_shard(profile, orders.meta, orders.directory, phases, shard);
    } else {
      shard.error = "no memory for what the ranks have in common";
    }
    bytes = written(shard);
  } catch (const std::bad_alloc&) {
    bytes.clear();
  }
  if (!to_root(leaders, bytes, complete)) return is_stored;
  if (is_root && has_orders) write_index(terms, orders, profile, shards_from(bytes), leaders.size());
  return is_stored;
}

}  // namespace

bool write_file(const Terms& terms, int ranks, Profile& profile, out::Phases phases) {
  profile.world_size = ranks;
  profile.finish();
  phases.agreed = terms.clock();
  const out::Meta meta = out::with_totals(terms.meta(), out::Totals(profile), ranks);
  const out::Stored stored = out::store(profile, meta, terms.name(), phases);
  if (stored.path.empty()) {
    say("no profile: %s. %s", stored.error.c_str(), kept);
    return false;
  }
  say_stored(terms, profile.ranks.size(), stored.path, stored.error);
  return true;
}

// A row costs the rank that writes it about 1.4 microseconds, and a file costs the file system, which serves one after
// the other, about 0.3 milliseconds: rows * 1.4 us / A + A * 0.3 ms is least where A is the root of rows / 214.  One
// file is handier, as long as it is a matter of a second.  Measured by bench/scale.py, docs/scale.md.
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

Collected collect_together(Group& group, const Terms& terms) {
  std::vector<char> own;
  Outline plan;
  bool is_stored = false;
  {
    Counted counted;
    bool has_counted = false;
    try {
      counted = terms.counted();
      has_counted = true;
    } catch (const std::exception& e) {
      say("rank %d: cannot collect: %s", group.rank(), e.what());
    }
    if (!outline(group, terms, has_counted ? &counted : nullptr, plan)) return Collected::not_stored;
    if (plan.in_session) return Collected::too_early;
    try {
      if (has_counted) own = packed(counted, terms.begin, plan.slices);
    } catch (const std::exception& e) {
      say("rank %d: cannot collect: %s", group.rank(), e.what());
    }
  }
  const int block = block_size(group.size(), terms.aggregators, plan.rows);
  const int leader = group.rank() / block * block;
  char answer = 0;
  if (group.rank() != leader) {
    const Passed passed = put(group, leader, own);
    own = {};
    if (passed == Passed::broken || !group.receive(leader, &answer, 1)) return Collected::not_stored;
    return passed == Passed::yes && answer != 0 ? Collected::stored : Collected::not_stored;
  }

  out::Phases phases;
  phases.begin = terms.begin;
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
  phases.gathered = terms.clock();
  if (!complete) say("rank %d: the data of some ranks is missing; the profile has the others", group.rank());
  try {
    if (block >= group.size()) {
      is_stored = write_file(terms, group.size(), profile, phases);
    } else {
      Leaders leaders(group, block);
      is_stored = write_shards(leaders, terms, group.size(), profile, phases);
    }
  } catch (const std::exception& e) {
    say("rank %d: no profile: %s", group.rank(), e.what());
  }
  answer = is_stored && complete ? 1 : 0;
  for (int rank = leader + 1; rank < end; ++rank) group.send(rank, &answer, 1);
  return answer != 0 ? Collected::stored : Collected::not_stored;
}

}  // namespace commlens
