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
  codec.signed_number(end.from);
  codec.signed_number(end.to);
  codec.number(end.is_receiver);
  codec.signed_number(end.rank);
  codec.number(end.has_several_threads);
  codec.number(end.messages);
  codec.number(end.all);
  codec.number(end.clock.machine);
  codec.real(end.clock.ns_per_tick);
  line_fields(codec, end.clock.line);
  codec.list(end.samples, 0, [&codec](auto& row) { row_fields(codec, row); });
}

using Rows = std::vector<const MessageRow*>;

// A run is a part of a channel of which both sides have samples of all messages, and before which both have had the
// same tags, as their sums tell.  In a run, the j-th message with a tag belongs to the j-th receive with it.
class Matcher {
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
    using Both = std::pair<const MessageRow*, const MessageRow*>;
    std::map<std::uint64_t, Both> rows;
    for (const MessageRow* const row : rows_of(sender)) rows[row->number].first = row;
    for (const MessageRow* const row : rows_of(receiver)) rows[row->number].second = row;
    std::uint64_t expected = 0;
    for (const auto& [number, both] : rows) {
      if (number != expected) begin_run(false);
      expected = number + 1;
      add(both.first, both.second);
    }
    begin_run(false);
  }

  Matched result;

 private:
  static Rows rows_of(const ChannelEnd* end) {
    Rows rows;
    if (end == nullptr) return rows;
    for (const MessageRow& row : end->samples) rows.push_back(&row);
    return rows;
  }

  void lose_channel(const ChannelEnd& end) {
    const std::uint32_t any = end.is_receiver ? op::MPI_Recv : op::MPI_Send;
    const bool has_call = !end.samples.empty() && end.samples[0].op != 0;
    const MessageRow& call = has_call ? end.samples[0] : MessageRow{};
    result.lost.push_back({&end, has_call ? call.comm : end.comm, has_call ? call.op : any, call.bin, Unsplit::threads,
                           std::max<std::uint64_t>(end.messages, 1)});
  }

  void lose(const Rows& sent, const Rows& received, Unsplit reason) {
    for (const MessageRow* const row : sent) result.lost.push_back({sender_, row->comm, row->op, row->bin, reason, 1});
    for (const MessageRow* const row : received)
      result.lost.push_back({receiver_, row->comm, row->op, row->bin, reason, 1});
  }

  // Adds the samples of the next number; null: that side has none.
  void add(const MessageRow* sent, const MessageRow* received) {
    if (sent == nullptr || received == nullptr) {
      begin_run(false);
      return lose(sent == nullptr ? Rows{} : Rows{sent}, received == nullptr ? Rows{} : Rows{received},
                  Unsplit::members);
    }
    if (sent->tags == received->tags) begin_run(true);
    if (!is_aligned_) return lose({sent}, {received}, Unsplit::unordered);
    sent_.push_back(sent);
    received_.push_back(received);
  }

  // Matches the samples of a run by their tags, and begins the next one.  is_aligned: both sides have had the same tags
  // before it.
  void begin_run(bool is_aligned) {
    is_aligned_ = is_aligned;
    if (sent_.size() == 1 && sent_[0]->tag == received_[0]->tag) {
      result.messages.push_back({sender_, receiver_, sent_[0], received_[0]});
    } else {
      match_run();
    }
    sent_.clear();
    received_.clear();
  }

  void match_run() {
    std::map<int, std::pair<Rows, std::size_t>> of_tag;  // samples of the receiver, and how many are taken
    for (const MessageRow* const row : received_) of_tag[row->tag].first.push_back(row);
    for (const MessageRow* const row : sent_) {
      auto& [rows, taken] = of_tag[row->tag];
      if (taken == rows.size()) {
        lose({row}, {}, Unsplit::unordered);
      } else {
        result.messages.push_back({sender_, receiver_, row, rows[taken++]});
      }
    }
    for (const auto& [tag, rows] : of_tag) {
      lose({}, Rows(rows.first.begin() + static_cast<std::ptrdiff_t>(rows.second), rows.first.end()),
           Unsplit::unordered);
    }
  }

  const ChannelEnd *sender_ = nullptr, *receiver_ = nullptr;
  Rows sent_, received_;  // of the run
  bool is_aligned_ = false;
};

}  // namespace

void settle_channels(Profile& profile) {
  const std::map<int, RankClock> clocks = clocks_of(profile);
  const auto before = [](const ChannelEnd& a, const ChannelEnd& b) { return a.place() < b.place(); };
  for (ChannelEnd& end : profile.channels) end.clock = clocks.at(end.rank);
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

Matched match(const ChannelEnds& ends) {
  Matcher matcher;
  for (std::size_t i = 0; i < ends.size();) {
    const bool has_both = i + 1 < ends.size() && !ends[i].is_receiver && ends[i + 1].is_receiver &&
                          std::tie(ends[i].comm, ends[i].from, ends[i].to) ==
                              std::tie(ends[i + 1].comm, ends[i + 1].from, ends[i + 1].to);
    const ChannelEnd* const sender = ends[i].is_receiver ? nullptr : &ends[i];
    matcher.channel(sender, has_both ? &ends[i + 1] : sender == nullptr ? &ends[i] : nullptr);
    i += has_both ? 2 : 1;
  }
  return std::move(matcher.result);
}

}  // namespace commlens
