// SPDX-License-Identifier: Apache-2.0
#include "core/collect/shards.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "core/base/say.h"
#include "core/base/wire.h"
#include "core/collect/agree.h"
#include "core/profile/messages.h"
#include "core/profile/profile.h"

namespace commlens {
namespace {

// Concatenates the bytes of all aggregators at rank 0, in the order of ranks.  Returns false if communication failed.
bool to_root(Group& group, std::vector<char>& bytes, bool& complete) {
  const Tree tree = tree_of(group);
  std::vector<char> more;
  for (const int child : tree.children) {
    const TransferResult passed = take(group, child, more);
    if (passed == TransferResult::broken) return false;
    try {
      bytes.insert(bytes.end(), more.begin(), more.end());
    } catch (const std::bad_alloc&) {
      complete = false;
    }
    complete = complete && passed == TransferResult::yes;
  }
  return tree.parent < 0 || put(group, tree.parent, bytes) != TransferResult::broken;
}

// Serialises what one aggregator contributes to the facts about the whole run.
std::vector<char> written(const out::Totals& totals) {
  WireWriter out;
  out.number(totals.elapsed);
  out.number(totals.ranks);
  out.number(totals.app);
  out.number(totals.mpi);
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
    totals.app += in.number();
    totals.mpi += in.number();
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

// The orders of rank 0 to all aggregators before they write; empty if there is nothing to write.
struct Orders {
  std::string directory;
  out::Meta meta;
  out::Totals totals;
  std::vector<char> catalogue;
  std::string elsewhere;  // on rank 0: why the directory is not where the user wanted it
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
bool write_index(const Destination& destination, const Orders& orders, const Profile& profile,
                 const std::vector<out::Shard>& shards, int count) {
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
  if (error.empty()) error = "their ranks reported no result";
  if (written == 0) {
    say("no profile: %s. %s", error.c_str(), kept_in_arenas);
    return false;
  }
  if (written < count) {
    say("%d of %d files of the profile are missing, those of ranks %s: %s. %s", count - written, count,
        blocks_of(shards).c_str(), error.c_str(), kept_in_arenas);
  }
  const out::Stored stored = out::store_index(profile, orders.meta, shards, orders.directory, destination.mode);
  if (stored.path.empty()) {
    say("%s; commlens can read the files in %s without it", stored.error.c_str(), orders.directory.c_str());
  } else {
    out::Totals totals = orders.totals;
    totals.ranks = ranks;
    say_stored(destination, totals, {orders.directory, orders.elsewhere});
  }
  return !stored.path.empty();
}

// On rank 0, after the dictionaries were merged: creates the directory and returns the orders for all aggregators.
std::vector<char> make_orders(const Destination& destination, AgreementResult agreed, int ranks, const Profile& profile,
                              const std::vector<char>& totals, Orders& orders) {
  try {
    if (agreed == AgreementResult::no_memory || destination.name.empty()) throw std::bad_alloc();
    orders.totals = totals_from(totals);
    orders.meta = out::with_totals(destination.meta, orders.totals, ranks);
    orders.catalogue = profile.dictionary.catalogue().packed();
    orders.directory = out::make_directory(destination.name, destination.mode, orders.elsewhere);
    if (!orders.directory.empty()) return written(orders);
    say("no profile: %s. %s", orders.elsewhere.c_str(), kept_in_arenas);
  } catch (const std::exception&) {
    say("no profile: no memory for the names that all ranks share. %s", kept_in_arenas);
  }
  return {};
}

// Runs an action that may lack memory; the other aggregators wait for messages of this one whether it succeeds or not.
template <class Action>
bool has_memory_for(Action action) {
  try {
    action();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Collective: adds up values at rank 0.  Returns false if communication failed.
bool sums_at_root(Group& group, std::vector<std::uint64_t>& values) {
  const Tree tree = tree_of(group);
  std::vector<char> bytes;
  for (const int child : tree.children) {
    if (take(group, child, bytes) == TransferResult::broken) return false;
    WireReader in(bytes.data(), bytes.size());
    for (std::uint64_t& value : values) value += in.number();
  }
  bytes.clear();
  has_memory_for([&] {
    WireWriter out;
    for (const std::uint64_t value : values) out.number(value);
    bytes = out.bytes();
  });
  return tree.parent < 0 || put(group, tree.parent, bytes) != TransferResult::broken;
}

// Collective: merges the data of all blocks at rank 0.  add: adds the data of another block to that of this one; write:
// serialises the result.  bytes: afterwards the result; on rank 0 that of all blocks.  Returns false if communication
// failed.
template <class Add, class Write>
bool merge_blocks(Group& leaders, std::vector<char>& bytes, Add add, Write write) {
  const Tree tree = tree_of(leaders);
  for (const int child : tree.children) {
    if (take(leaders, child, bytes) == TransferResult::broken) return false;
    has_memory_for([&] {
      WireReader in(bytes.data(), bytes.size());
      add(in);
    });
  }
  bytes.clear();
  has_memory_for([&] {
    WireWriter out;
    write(out);
    bytes = out.bytes();
  });
  return tree.parent < 0 || put(leaders, tree.parent, bytes) != TransferResult::broken;
}

// Collective: relates the clocks of all machines and gives each rank the line of its own.  Returns false if
// communication failed.
bool relate_clocks(Group& leaders, Profile& profile, bool is_settled) {
  ClockFacts facts;
  if (is_settled) has_memory_for([&] { facts = clock_facts(profile); });
  std::vector<char> bytes;
  const auto add = [&](WireReader& in) { merge_clock_facts(facts, read_clock_facts(in)); };
  if (!merge_blocks(leaders, bytes, add, [&](WireWriter& out) { write_clock_facts(out, facts); })) return false;
  if (leaders.rank() == 0) {
    bytes.clear();
    has_memory_for([&] {
      WireWriter out;
      write_clock_lines(out, is_settled ? related(facts, profile) : std::vector<ClockLine>());
      bytes = out.bytes();
    });
  }
  if (!from_root(leaders, bytes)) return false;
  has_memory_for([&] {
    WireReader in(bytes.data(), bytes.size());
    profile.clocks = read_clock_lines(in);
    set_lines(profile, profile.clocks);
  });
  return true;
}

// Collective: merges what the ranks of all blocks have sampled.  Afterwards, `calls` has the samples of all ranks.
// Returns false if communication failed.
bool merge_samples(Group& leaders, SampledCalls& calls) {
  std::vector<char> bytes;
  const auto add = [&](WireReader& in) { add_calls(calls, read_sampled_calls(in)); };
  if (!merge_blocks(leaders, bytes, add, [&](WireWriter& out) { write_calls(out, calls); })) return false;
  if (!from_root(leaders, bytes)) return false;
  calls.clear();
  has_memory_for([&] {
    WireReader in(bytes.data(), bytes.size());
    calls = read_sampled_calls(in);
  });
  return true;
}

// Collective: splits the messages between ranks of all blocks.  Returns false if communication failed.
bool split_channels(Group& leaders, Profile& profile, bool is_settled) {
  ChannelEnds ends;
  if (is_settled) {
    has_memory_for([&] {
      settle_channels(profile);
      ends = std::move(profile.channels);
    });
  }
  std::vector<char> bytes;
  const auto add = [&](WireReader& in) { add_channels(ends, read_channels(in)); };
  if (!merge_blocks(leaders, bytes, add, [&](WireWriter& out) { write_channels(out, ends); })) return false;
  if (!from_root(leaders, bytes)) return false;
  SplitMessages messages;
  std::vector<MessageTime> times;
  std::vector<std::uint64_t> sums;  // for each kind of call: time, waiting, calls, mixed
  has_memory_for([&] {
    WireReader in(bytes.data(), bytes.size());
    ends = read_channels(in);
    messages = split_messages(ends);
    if (is_settled) times = add_waiting(profile, messages);
    for (const MessageTime& time : times) sums.insert(sums.end(), {time.time, time.waiting, time.calls, time.mixed});
  });
  if (!sums_at_root(leaders, sums)) return false;
  if (leaders.rank() != 0 || sums.size() != 4 * times.size()) return true;
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i].time = sums[4 * i];
    times[i].waiting = sums[4 * i + 1];
    times[i].calls = sums[4 * i + 2];
    times[i].mixed = sums[4 * i + 3];
  }
  has_memory_for([&] { sum_up(profile, messages, times); });
  return true;
}

// Collective: splits the samples of all blocks.  Every aggregator gets the rows of its ranks, and rank 0 the calls. One
// without memory contributes no samples, so that no call with members in its block is split.  Returns false if
// communication failed.
bool split_samples(Group& leaders, Profile& profile, bool is_settled) {
  if (!relate_clocks(leaders, profile, is_settled)) return false;
  SampledCalls calls;
  if (is_settled) has_memory_for([&] { calls = sampled_calls(profile); });
  if (!merge_samples(leaders, calls)) return false;
  std::vector<std::uint64_t> sums;  // for each call: waiting, residual, calls
  has_memory_for([&] {
    if (is_settled) split(profile, calls);
    for (const SampledCall& call : calls) {
      sums.push_back(call.waiting);
      sums.push_back(static_cast<std::uint64_t>(call.residual));
      sums.push_back(call.calls);
    }
  });
  if (!sums_at_root(leaders, sums)) return false;
  if (leaders.rank() != 0 || !is_settled || sums.size() != 3 * calls.size()) return true;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].waiting = sums[3 * i];
    calls[i].residual = static_cast<std::int64_t>(sums[3 * i + 1]);
    calls[i].calls = sums[3 * i + 2];
  }
  has_memory_for([&] { sum_up(profile, calls); });
  return true;
}

// Gives the rows of this aggregator the numbers that all share.  orders_bytes: what rank 0 sent; rank 0 itself has
// `orders` already.  own: the size of the dictionary before the others' entries were added.  Returns false, with the
// reason in `shard`, if there is no memory.
bool settle(const Group& leaders, const std::vector<char>& orders_bytes, Orders& orders, Dictionary::Size own,
            Profile& profile, out::Shard& shard) {
  shard.error = "out of memory";  // short enough for no allocation
  const bool has_memory = has_memory_for([&] {
    Catalogue catalogue;
    const bool has_orders = !orders_bytes.empty() && (leaders.rank() == 0 || orders_from(orders_bytes, orders));
    if (!has_orders || !catalogue.unpack(orders.catalogue)) return;
    profile.slice_ns = orders.totals.slice_ns;
    profile.slices_folded = orders.totals.slices_folded;
    profile.settle(std::move(catalogue), own);
    shard.error.clear();
  });
  return has_memory && shard.error.empty();
}

}  // namespace

bool write_shards(Group& leaders, const Destination& destination, int ranks, Profile& profile, out::Phases phases) {
  const bool is_root = leaders.rank() == 0;
  const Dictionary::Size own = profile.dictionary.size();
  // Agree.
  const AgreementResult agreed = agree(leaders, profile.dictionary);
  if (agreed == AgreementResult::broken) return false;
  bool complete = true;
  std::vector<char> bytes;
  complete = has_memory_for([&] { bytes = written(out::Totals(profile)); });
  if (!to_root(leaders, bytes, complete)) return false;
  Orders orders;
  if (is_root) bytes = make_orders(destination, agreed, ranks, profile, bytes, orders);
  if (!from_root(leaders, bytes)) return false;
  const bool has_orders = !bytes.empty();

  out::Shard shard;
  shard.number = static_cast<std::uint64_t>(leaders.rank());
  shard.first_rank = static_cast<std::uint64_t>(profile.dictionary.block().first);
  const bool is_settled = settle(leaders, bytes, orders, own, profile, shard);
  const Ticks settled = phases.clock();
  if (!split_samples(leaders, profile, is_settled)) return false;
  if (!split_channels(leaders, profile, is_settled)) return false;
  phases.split = phases.clock() - settled;

  // Write and store.
  phases.agreed = phases.clock();
  bool is_stored = false;
  try {
    is_stored = is_settled && out::store_shard(profile, orders.meta, orders.directory, phases, destination.mode, shard);
    bytes = written(shard);
  } catch (const std::exception&) {
    bytes.clear();
  }
  if (!to_root(leaders, bytes, complete)) return false;
  // No rank removes its arena before the index exists.  If the job is killed before that, `commlens recover` can still
  // recover all of it.
  std::vector<char> has_index;
  try {
    if (is_root && has_orders && write_index(destination, orders, profile, shards_from(bytes), leaders.size())) {
      has_index.assign(1, 1);
    }
  } catch (const std::exception& e) {  // the other leaders wait for the answer
    say("no index of the profile: %s. %s", e.what(), kept_in_arenas);
  }
  return from_root(leaders, has_index) && !has_index.empty() && is_stored;
}

}  // namespace commlens
