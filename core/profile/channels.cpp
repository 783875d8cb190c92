// SPDX-License-Identifier: Apache-2.0
#include "core/profile/channels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/profile/codec.h"
#include "core/profile/profile.h"
#include "core/state/messages.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

template <class Codec, class Row>
void row_fields(Codec& codec, Row& row) {
  codec.number(row.number);
  codec.number(row.entered);
  codec.number(row.left);
  codec.number(row.posted);
  codec.number(row.comm);
  codec.number(row.op);
  codec.number(row.bin);
  codec.number(row.region);
  codec.signed_number(row.tag);
  codec.number(row.tags);
}

template <class Codec, class End>
void end_fields(Codec& codec, End& end) {
  codec.number(end.comm);
  codec.number(end.operation);
  codec.signed_number(end.from);
  codec.signed_number(end.to);
  codec.number(end.is_receiver);
  codec.signed_number(end.rank);
  codec.number(end.has_several_threads);
  codec.number(end.messages);
  codec.number(end.all);
  codec.number(end.members);
  codec.list(end.destinations, 0, [&codec](auto& rank) { codec.signed_number(rank); });
  codec.signed_number(end.sources);
  codec.number(end.clock.machine);
  codec.real(end.clock.ns_per_tick);
  line_fields(codec, end.clock.line);
  codec.list(end.samples, 0, [&codec](auto& row) { row_fields(codec, row); });
}

using Rows = std::vector<const MessageRow*>;

// A run is a part of a channel of which both sides have samples of all messages, and before which both have had the
// same tags, as their sums tell.  In a run, the j-th message with a tag belongs to the j-th receive with it.
class Matcher {
  // The samples of one number; null: that side has none.
  struct Pair {
    const MessageRow *sent = nullptr, *received = nullptr;
    bool is_aligned = false;  // both sides have had the same tags before
  };

 public:
  // Matches the two ends of one channel; null: that process has no samples of it.
  void channel(const ChannelEnd* sender, const ChannelEnd* receiver) {
    sender_ = sender;
    receiver_ = receiver;
    bool is_usable = true;
    for (const ChannelEnd* const end : {sender, receiver}) {
      if (end == nullptr || !end->has_several_threads) continue;
      is_usable = false;
      lose_channel(*end);
    }
    if (!is_usable) return;
    const Rows sent = rows_of(sender), received = rows_of(receiver);
    std::uint64_t expected = 0;
    for (auto s = sent.begin(), r = received.begin(); s != sent.end() || r != received.end();) {
      const std::uint64_t number = std::min(s != sent.end() ? (*s)->number : ~std::uint64_t{0},
                                            r != received.end() ? (*r)->number : ~std::uint64_t{0});
      Pair pair;
      while (s != sent.end() && (*s)->number == number) pair.sent = *s++;
      while (r != received.end() && (*r)->number == number) pair.received = *r++;
      const bool is_whole = pair.sent != nullptr && pair.received != nullptr;
      if (number != expected || !is_whole) end_stretch();
      expected = number + 1;
      if (!is_whole) {
        lose(pair, Unsplit::members);
        continue;
      }
      pair.is_aligned = pair.sent->tags == pair.received->tags;
      stretch_.push_back(pair);
    }
    end_stretch();
  }

  MatchedMessages result;

 private:
  // Returns the samples by number.  Those of the arena of a killed process may be in another order.
  static Rows rows_of(const ChannelEnd* end) {
    Rows rows;
    if (end == nullptr) return rows;
    rows.reserve(end->samples.size());
    for (const MessageRow& row : end->samples) rows.push_back(&row);
    const auto before = [](const MessageRow* a, const MessageRow* b) { return a->number < b->number; };
    if (!std::is_sorted(rows.begin(), rows.end(), before)) std::stable_sort(rows.begin(), rows.end(), before);
    return rows;
  }

  void lose_channel(const ChannelEnd& end) {
    const std::uint32_t any = end.is_receiver ? op::MPI_Recv : op::MPI_Send;
    const bool has_call = !end.samples.empty() && end.samples[0].op != 0;
    const MessageRow& call = has_call ? end.samples[0] : MessageRow{};
    result.lost.push_back({&end, has_call ? call.comm : end.comm, has_call ? call.op : any, call.bin, Unsplit::threads,
                           std::max<std::uint64_t>(end.messages, 1)});
  }

  void lose(const Pair& pair, Unsplit reason) {
    if (pair.sent != nullptr) lose(*sender_, *pair.sent, reason);
    if (pair.received != nullptr) lose(*receiver_, *pair.received, reason);
  }
  void lose(const ChannelEnd& end, const MessageRow& row, Unsplit reason) {
    result.lost.push_back({&end, row.comm, row.op, row.bin, reason, 1});
  }

  // Matches messages with consecutive numbers, of which both sides have samples.
  void end_stretch() {
    const std::size_t moved = sort_by_posting();
    bool is_known = false;
    for (std::size_t i = 0; i < stretch_.size(); ++i) {
      const Pair& pair = stretch_[i];
      // Receives may have changed places with others before or after the stretch, by as much as within it.
      const bool is_at_edge = (i < moved && stretch_.front().sent->number != 0) || i + moved >= stretch_.size();
      if (pair.is_aligned || is_at_edge) match_run();
      is_known = !is_at_edge && (is_known || pair.is_aligned);
      if (is_known) {
        run_.push_back(pair);
      } else {
        lose(pair, Unsplit::unordered);
      }
    }
    match_run();
    stretch_.clear();
  }

  // Receives take the messages of one tag in the order in which they are posted, but are numbered when they complete.
  // Puts them into the order of posting, as far as it is known.  Returns by how many places one has moved at most.
  std::size_t sort_by_posting() {
    std::map<int, std::vector<std::size_t>> places;  // by tag
    for (std::size_t i = 0; i < stretch_.size(); ++i) places[stretch_[i].received->tag].push_back(i);
    std::size_t moved = 0;
    for (const auto& [tag, at] : places) {
      std::vector<std::pair<const MessageRow*, std::size_t>> rows;
      for (const std::size_t i : at) rows.emplace_back(stretch_[i].received, i);
      const auto is_unknown = [](const auto& row) { return row.first->posted == 0; };
      const auto before = [](const auto& a, const auto& b) { return a.first->posted < b.first->posted; };
      if (std::any_of(rows.begin(), rows.end(), is_unknown) || std::is_sorted(rows.begin(), rows.end(), before))
        continue;
      std::stable_sort(rows.begin(), rows.end(), before);
      for (std::size_t n = 0; n < rows.size(); ++n) {
        const std::size_t from = rows[n].second, to = at[n];
        stretch_[to].received = rows[n].first;
        moved = std::max(moved, from < to ? to - from : from - to);
      }
    }
    return moved;
  }

  // Matches the messages of a run by their tags.
  void match_run() {
    if (run_.size() == 1 && run_[0].sent->tag == run_[0].received->tag) {
      result.messages.push_back({sender_, receiver_, run_[0].sent, run_[0].received});
      return run_.clear();
    }
    std::map<int, std::pair<Rows, std::size_t>> of_tag;  // samples of the receiver, and how many are taken
    for (const Pair& pair : run_) of_tag[pair.received->tag].first.push_back(pair.received);
    for (const Pair& pair : run_) {
      auto& [rows, taken] = of_tag[pair.sent->tag];
      if (taken == rows.size()) {
        lose(*sender_, *pair.sent, Unsplit::unordered);
      } else {
        result.messages.push_back({sender_, receiver_, pair.sent, rows[taken++]});
      }
    }
    for (const auto& [tag, rows] : of_tag) {
      for (std::size_t i = rows.second; i < rows.first.size(); ++i)
        lose(*receiver_, *rows.first[i], Unsplit::unordered);
    }
    run_.clear();
  }

  const ChannelEnd *sender_ = nullptr, *receiver_ = nullptr;
  std::vector<Pair> stretch_, run_;
};

}  // namespace

void settle_channels(Profile& profile) {
  const std::map<int, RankClock> clocks = clocks_of(profile);
  const auto before = [](const ChannelEnd& a, const ChannelEnd& b) { return a.place() < b.place(); };
  for (ChannelEnd& end : profile.channels) {
    end.clock = clocks.at(end.rank);
    end.members = profile.comms[end.comm].size;
  }
  std::sort(profile.channels.begin(), profile.channels.end(), before);
}

void add_channels(ChannelEnds& to, const ChannelEnds& more) {
  merge_by_place(to, more, [](ChannelEnd&, const ChannelEnd&) {});  // each end is of one rank
}

void write_channels(WireWriter& out, const ChannelEnds& ends) {
  Encoder encoder(out);
  encoder.list(ends, 0, [&encoder](const ChannelEnd& end) { end_fields(encoder, end); });
}

ChannelEnds read_channels(WireReader& in) {
  ChannelEnds ends;
  Decoder decoder(in);
  decoder.list(ends, 0, [&decoder](ChannelEnd& end) { end_fields(decoder, end); });
  if (!in.ok()) ends.clear();
  return ends;
}

Later later(const RankClock& of, Ticks time, const RankClock& than_of, Ticks than) {
  if (of.machine == than_of.machine)
    return {static_cast<double>(static_cast<std::int64_t>(time - than)) * than_of.ns_per_tick, 0, true};
  const ClockLine &line = of.line, &other = than_of.line;
  if (!line.is_known || !other.is_known) return {};
  const auto ticks = static_cast<std::int64_t>(line.translated(time) - other.translated(than));
  return {static_cast<double>(ticks) * other.ns_per_tick, line.error + other.error, true};
}

Ns spent_in(const ChannelEnd& end, const MessageRow& row) {
  return row.left > row.entered
             ? static_cast<Ns>(static_cast<double>(row.left - row.entered) * end.clock.ns_per_tick + 0.5)
             : 0;
}

MatchedMessages match(const ChannelEnds& ends) {
  Matcher matcher;
  for (std::size_t i = 0; i < ends.size();) {
    if (ends[i].operation != 0) {
      ++i;
      continue;
    }
    const bool has_both = i + 1 < ends.size() && !ends[i].is_receiver && ends[i + 1].is_receiver &&
                          ends[i + 1].operation == 0 &&
                          std::tie(ends[i].comm, ends[i].from, ends[i].to) ==
                              std::tie(ends[i + 1].comm, ends[i + 1].from, ends[i + 1].to);
    const ChannelEnd* const sender = ends[i].is_receiver ? nullptr : &ends[i];
    matcher.channel(sender, has_both ? &ends[i + 1] : sender == nullptr ? &ends[i] : nullptr);
    i += has_both ? 2 : 1;
  }
  return std::move(matcher.result);
}

}  // namespace commlens
