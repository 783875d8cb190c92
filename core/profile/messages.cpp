// SPDX-License-Identifier: Apache-2.0
#include "core/profile/messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/profile/operations.h"
#include "core/profile/profile.h"
#include "core/state/partners.h"

namespace commlens {
namespace {

Ns positive(double ns) { return ns > 0 ? static_cast<Ns>(ns + 0.5) : 0; }

// Returns whether a sender may wait in the call that sends.
bool waits_in(std::uint32_t op) {
  if (op >= std::size(op_facts)) return false;
  const Partners partners = op_facts[op].partners;
  return partners == Partners::to || partners == Partners::both;
}

using Kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // communicator, procedure, size bin
using KindOfRank = std::pair<Kind, int>;

// Finds entries of a map by keys that come many times in a row, or two of them in turns: as a rule without a search.
template <class Map>
class InRuns {
 public:
  explicit InRuns(Map& map) : map_(map) {}

  typename Map::mapped_type& operator[](const typename Map::key_type& key) {
    if (last_ == nullptr || last_->first != key) {
      std::swap(last_, before_);
      if (last_ == nullptr || last_->first != key) last_ = &*map_.try_emplace(key).first;
    }
    return last_->second;
  }

 private:
  Map& map_;
  typename Map::value_type *last_ = nullptr, *before_ = nullptr;
};

class Splitter {
 public:
  explicit Splitter(const ChannelEnds& ends) : ends_(ends), matched_(match(ends)), procedures_(ends.size()) {
    result_.lost = std::move(matched_.lost);
    const SplitOperations operations = split_operations(ends);
    std::size_t most = matched_.messages.size() + operations.parts.size();
    for (const Message& message : matched_.messages) most += waits_in(message.sent->op) ? 1 : 0;
    halves_.reserve(most);
    for (const Message& message : matched_.messages) {
      receiver_waits(message);
      if (waits_in(message.sent->op)) sender_waits(message);
    }
    for (const OperationPart& part : operations.parts)
      add(*part.end, *part.row, *part.late, *part.late_row, part.until, spent_in(*part.end, *part.row));
    result_.lost.insert(result_.lost.end(), operations.lost.begin(), operations.lost.end());
  }

  SplitMessages result() {
    weigh();
    join();
    return std::move(result_);
  }

 private:
  // The samples of one procedure at one end.  There are few: a list is faster than a map.
  struct OfProcedure {
    std::uint32_t op;
    std::uint64_t sampled = 0, split = 0;
    double weight = 1;
  };
  struct Half {
    MessageCallRow call;
    const ChannelEnd* end;
  };
  // What orders the halves of one kind and rank: by call, and the longest waiting first.
  struct Place {
    Ticks entered;
    Ns shorter;  // the larger, the shorter is the waiting
    int late_rank;
    std::uint32_t half;

    auto order() const { return std::tie(entered, shorter, late_rank, half); }
  };
  using Places = std::vector<Place>;

  OfProcedure& of_procedure(const ChannelEnd& end, std::uint32_t op) {
    std::vector<OfProcedure>& all = procedures_[static_cast<std::size_t>(&end - ends_.data())];
    const auto found = std::find_if(all.begin(), all.end(), [op](const OfProcedure& one) { return one.op == op; });
    return found != all.end() ? *found : all.emplace_back(OfProcedure{op});
  }

  // Adds what one end says about a message.  waiting: ns, of the time `spent` in the call.
  void add(const ChannelEnd& end, const MessageRow& row, const ChannelEnd& other, const MessageRow& other_row,
           const Later& until, Ns spent) {
    MessageCallRow call;
    call.comm = row.comm;
    call.op = row.op;
    call.bin = row.bin;
    call.region = row.region;
    call.rank = end.rank;
    call.entered = row.entered;
    call.spent = spent;
    call.waiting = std::min(positive(until.ns), spent);
    call.apart = positive(std::abs(until.ns));
    call.behind = positive(-until.ns);
    call.is_across = end.clock.machine != other.clock.machine;
    call.tolerance = std::min(until.tolerance, spent);
    call.block = row.number >> message_block_bits;
    call.late_rank = other.rank;
    call.late_region = other_row.region;
    halves_.push_back({call, &end});
    ++of_procedure(end, row.op).split;
  }

  void lose(const ChannelEnd& end, const MessageRow& row, Unsplit reason) {
    result_.lost.push_back({&end, row.comm, row.op, row.bin, reason, 1});
  }

  void receiver_waits(const Message& m) {
    const Later until = later(m.sender->clock, m.sent->entered, m.receiver->clock, m.received->entered);
    if (!until.is_known) return lose(*m.receiver, *m.received, Unsplit::machines);
    const Ns spent = spent_in(*m.receiver, *m.received);
    if (until.ns > static_cast<double>(spent + until.tolerance + core_tolerance))
      return lose(*m.receiver, *m.received, Unsplit::unordered);
    add(*m.receiver, *m.received, *m.sender, *m.sent, until, spent);
  }

  void sender_waits(const Message& m) {
    if (m.received->posted == 0) return lose(*m.sender, *m.sent, Unsplit::posting);
    Later until = later(m.receiver->clock, m.received->posted, m.sender->clock, m.sent->entered);
    if (!until.is_known) return lose(*m.sender, *m.sent, Unsplit::machines);
    const Ns spent = spent_in(*m.sender, *m.sent);
    // It returned before the receive was posted: the message was buffered.
    if (until.ns > static_cast<double>(spent)) until.ns = 0;
    add(*m.sender, *m.sent, *m.receiver, *m.received, until, spent);
  }

  // Determines for how many calls each one stands: a rank knows how many messages it has received, or sent, and how
  // many of its samples are of this procedure, split or not.
  void weigh() {
    using Side = std::tuple<int, std::uint32_t, std::uint32_t, bool>;  // rank, communicator, operation, receiver
    std::map<Side, std::uint64_t> seen;                                // messages of the channels that have samples
    const auto side_of = [](const ChannelEnd& end) { return Side{end.rank, end.comm, end.operation, end.is_receiver}; };
    for (const ChannelEnd& end : ends_) {
      if (end.samples.empty()) continue;
      seen[side_of(end)] += std::max<std::uint64_t>(end.messages, end.samples.size());
      for (const MessageRow& row : end.samples) ++of_procedure(end, row.op).sampled;
    }
    const auto ratio = [](std::uint64_t a, std::uint64_t b) {
      return std::max(1.0, static_cast<double>(a) / static_cast<double>(b));
    };
    for (const ChannelEnd& end : ends_) {
      if (end.samples.empty()) continue;
      const double of_end = ratio(end.all, seen.at(side_of(end))) * ratio(end.messages, end.samples.size());
      for (OfProcedure& one : procedures_[static_cast<std::size_t>(&end - ends_.data())])
        one.weight = one.split == 0 ? 1 : of_end * ratio(one.sampled, one.split);
    }
    for (auto& [call, end] : halves_) call.weight = of_procedure(*end, call.op).weight;
  }

  // Joins what several messages of one call say: the latest counts.  The channel with the most samples tells for how
  // many calls it stands: it has samples of the others, too.
  void join() {
    result_.calls.reserve(halves_.size());
    for (auto& [of_rank, places] : places_by_rank()) {
      std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.order() < b.order(); });
      for (std::size_t i = 0; i < places.size(); ++i) {
        const MessageCallRow& half = halves_[places[i].half].call;
        if (i == 0 || places[i].entered != places[i - 1].entered) result_.calls.push_back(half);
        MessageCallRow& call = result_.calls.back();
        call.weight = std::min(call.weight, half.weight);
      }
    }
  }

  std::map<KindOfRank, Places> places_by_rank() const {
    std::map<KindOfRank, Places> all;
    InRuns<std::map<KindOfRank, Places>> of_rank(all);
    for (std::uint32_t i = 0; i < halves_.size(); ++i) {
      const MessageCallRow& call = halves_[i].call;
      of_rank[{call.kind(), call.rank}].push_back({call.entered, ~call.waiting, call.late_rank, i});
    }
    return all;
  }

  const ChannelEnds& ends_;
  MatchedMessages matched_;
  SplitMessages result_;
  std::vector<Half> halves_;
  std::vector<std::vector<OfProcedure>> procedures_;  // by end
};

// The sampled calls of one rank.
struct OfRank {
  std::uint64_t samples = 0;
  double weight = 0;
  std::uint64_t calls = 0;  // all calls, for which the samples cannot stand more than once
  Ns time = 0;              // in all calls

  // True if all calls wait for messages.  Then the waiting is estimated from its share in the time of the samples: long
  // calls and long waiting go together.  Otherwise the number of messages tells for how many calls the samples stand.
  bool is_pure() const {
    constexpr double nearly_all = 0.95;
    return weight >= nearly_all * static_cast<double>(calls);
  }
  // If all calls were sampled, their own time is more exact.
  bool has_time_of_samples() const { return is_pure() && samples < calls; }
  // Number of calls for which the samples stand, per unit of weight.
  double scale() const { return std::min(1.0, static_cast<double>(calls) / weight); }
  double share() const { return std::min(1.0, static_cast<double>(samples) / (weight * scale())); }
};

std::map<KindOfRank, OfRank> by_rank(const Profile& profile, const std::vector<MessageCallRow>& calls) {
  std::map<KindOfRank, OfRank> sums;
  InRuns<std::map<KindOfRank, OfRank>> sum_of(sums);
  for (const MessageCallRow& call : calls) {
    OfRank& sum = sum_of[{call.kind(), call.rank}];
    ++sum.samples;
    sum.weight += call.weight;
  }
  for (const Profile::Row& row : profile.rows) {
    const Profile::KeyFacts& key = profile.keys[row.key];
    const auto of_rank = sums.find({{key.comm, key.op, key.bin}, row.rank});
    if (of_rank == sums.end()) continue;
    of_rank->second.calls += row.calls;
    of_rank->second.time += row.time;
  }
  return sums;
}

using Waiting = std::map<std::tuple<Kind, std::uint32_t, int>, WaitingRow>;  // by kind, region and rank

// Returns the ranks of the profile in rising order.
std::vector<int> ranks_of(const Profile& profile) {
  std::vector<int> ranks;
  ranks.reserve(profile.ranks.size());
  for (const Profile::Rank& r : profile.ranks) ranks.push_back(r.facts.rank);
  if (!std::is_sorted(ranks.begin(), ranks.end())) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

bool has(const std::vector<int>& ranks, int rank) { return std::binary_search(ranks.begin(), ranks.end(), rank); }

// The samples end a little after their calls, which may make them longer than all calls together.
void shorten(Waiting& rows, const std::map<KindOfRank, OfRank>& ranks) {
  std::map<KindOfRank, Ns> times;
  const auto of = [](const auto& place) { return KindOfRank{std::get<0>(place), std::get<2>(place)}; };
  for (const auto& [place, row] : rows) times[of(place)] += row.time;
  for (auto& [place, row] : rows) {
    const auto of_rank = ranks.find(of(place));
    const Ns sum = times.at(of(place));
    if (of_rank == ranks.end() || sum <= of_rank->second.time) continue;
    row.time = static_cast<Ns>(static_cast<double>(row.time) * static_cast<double>(of_rank->second.time) /
                               static_cast<double>(sum));
  }
}

// Adds the waiting in the calls, and what others wait for, to the rows of the ranks in `own`.
void add_rows(const std::vector<MessageCallRow>& calls, const std::vector<int>& own,
              std::map<KindOfRank, OfRank>& ranks, Waiting& rows) {
  InRuns<Waiting> row_of_call(rows), row_of_late(rows);
  InRuns<std::map<KindOfRank, OfRank>> sum_of(ranks);
  for (const MessageCallRow& call : calls) {
    if (has(own, call.rank)) {
      WaitingRow& row = row_of_call[{call.kind(), call.region, call.rank}];
      const OfRank& of_rank = sum_of[{call.kind(), call.rank}];
      ++row.samples;
      row.behind += call.behind;
      const double part = call.weight * of_rank.scale() * of_rank.share();
      row.waiting += static_cast<Ns>(static_cast<double>(call.waiting) * part + 0.5);
      if (of_rank.has_time_of_samples()) row.time += static_cast<Ns>(static_cast<double>(call.spent) * part + 0.5);
    }
    if (call.waiting != 0 && has(own, call.late_rank)) {
      WaitingRow& row = row_of_late[{call.kind(), call.late_region, call.late_rank}];
      ++row.last;
      row.late += call.waiting;
    }
  }
}

}  // namespace

SplitMessages split_messages(const ChannelEnds& ends) { return Splitter(ends).result(); }

std::vector<MessageTime> add_waiting(Profile& profile, const SplitMessages& split) {
  std::map<KindOfRank, OfRank> ranks = by_rank(profile, split.calls);
  Waiting rows;
  InRuns<Waiting> row_of(rows);
  // The calls of a rank stand for their share of all its calls, in all regions.
  for (const Profile::Row& row : profile.rows) {
    const Profile::KeyFacts& key = profile.keys[row.key];
    const auto of_rank = ranks.find({{key.comm, key.op, key.bin}, row.rank});
    if (of_rank == ranks.end() || of_rank->second.has_time_of_samples()) continue;
    row_of[{of_rank->first.first, key.region, row.rank}].time +=
        static_cast<Ns>(static_cast<double>(row.time) * of_rank->second.share() + 0.5);
  }
  const std::vector<int> own = ranks_of(profile);
  add_rows(split.calls, own, ranks, rows);
  shorten(rows, ranks);
  std::vector<MessageTime> times;
  for (const MessageCallRow& call : split.calls) {
    if (times.empty() || std::tie(times.back().comm, times.back().op, times.back().bin) != call.kind())
      times.push_back({call.comm, call.op, call.bin});
  }
  const auto time_of = [&](const Kind& kind) {
    return std::lower_bound(times.begin(), times.end(), kind, [](const MessageTime& t, const Kind& of) {
      return std::make_tuple(t.comm, t.op, t.bin) < of;
    });
  };
  for (const auto& [kind, of_rank] : ranks) {
    if (!has(own, kind.second)) continue;
    MessageTime& sum = *time_of(kind.first);
    const auto calls = static_cast<std::uint64_t>(of_rank.weight * of_rank.scale() + 0.5);
    sum.calls += of_rank.is_pure() ? of_rank.calls : std::max(of_rank.samples, calls);
    sum.mixed += of_rank.is_pure() ? 0 : 1;
  }
  for (auto& [place, row] : rows) {
    std::tie(row.comm, row.op, row.bin) = std::get<0>(place);
    row.region = std::get<1>(place);
    row.rank = std::get<2>(place);
    row.waiting = std::min(row.waiting, row.time);
    if (row.comm < profile.has_comm.size()) profile.has_comm[row.comm] = 1;
    if (row.region < profile.has_region.size()) profile.has_region[row.region] = 1;
    MessageTime& sum = *time_of(std::get<0>(place));
    sum.time += row.time;
    sum.waiting += row.waiting;
    profile.waiting.push_back(row);
  }
  return times;
}

namespace {

// Returns the standard error of the waiting in all calls.  Ranks wait together, so that the blocks are the samples.
// scale: number of calls for which the samples stand, per unit of weight.  ratio: share of waiting in the time of the
// samples, if it gives the estimate; else 0.
Ns error_of(const std::vector<const MessageCallRow*>& calls, double share, double scale, double ratio, bool& is_known) {
  constexpr std::size_t fewest = 4;
  std::map<std::uint64_t, double> blocks;
  InRuns<std::map<std::uint64_t, double>> of_block(blocks);
  for (const MessageCallRow* const call : calls)
    of_block[call->block] +=
        scale * call->weight * (static_cast<double>(call->waiting) - ratio * static_cast<double>(call->spent));
  const auto n = static_cast<double>(blocks.size());
  is_known = share == 1 || blocks.size() >= fewest;
  if (share == 1 || !is_known) return 0;
  double mean = 0, squares = 0;
  for (const auto& [number, waiting] : blocks) mean += waiting / n;
  for (const auto& [number, waiting] : blocks) squares += (waiting - mean) * (waiting - mean);
  return static_cast<Ns>(std::sqrt((1 - share) * n / (n - 1) * squares));
}

// Adds up the calls of one kind.
SampledRow row_of(const std::vector<const MessageCallRow*>& calls, const MessageTime& time) {
  SampledRow row{time.comm, time.op, time.bin};
  std::vector<Ns> apart;
  double weight = 0;
  for (const MessageCallRow* const call : calls) {
    weight += call->weight;
    row.late += call->waiting;
    row.across += call->is_across ? 1 : 0;
    row.by_clock += call->is_across ? 1 : 0;
    row.clock += call->tolerance;
    apart.push_back(call->apart);
  }
  row.samples = calls.size();
  row.of = std::max(row.samples, time.calls);
  row.time = time.time;
  row.waiting = time.waiting;
  const double share = static_cast<double>(row.samples) / static_cast<double>(row.of);
  const bool has_ratio = time.mixed == 0 && time.time != 0;
  const double ratio = has_ratio ? static_cast<double>(time.waiting) / static_cast<double>(time.time) : 0;
  row.error = error_of(calls, share, static_cast<double>(row.of) / weight, ratio, row.has_error) +
              static_cast<Ns>(static_cast<double>(row.clock) / share);
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  std::nth_element(apart.begin(), middle, apart.end());
  row.spread = *middle;
  return row;
}

}  // namespace

void sum_up(Profile& profile, const SplitMessages& split, const std::vector<MessageTime>& times) {
  std::map<Kind, std::vector<const MessageCallRow*>> groups;
  InRuns<std::map<Kind, std::vector<const MessageCallRow*>>> group_of(groups);
  for (const MessageCallRow& call : split.calls) group_of[call.kind()].push_back(&call);
  for (const MessageTime& time : times)
    profile.sampled.push_back(row_of(groups.at({time.comm, time.op, time.bin}), time));
  std::map<std::pair<Kind, Unsplit>, std::uint64_t> lost;
  for (const LostSample& one : split.lost) lost[{{one.comm, one.op, one.bin}, one.reason}] += one.calls;
  for (const auto& [key, calls] : lost) {
    const auto& [comm, op, bin] = key.first;
    profile.unsplit.push_back({comm, op, bin, key.second, calls});
  }
}

}  // namespace commlens
