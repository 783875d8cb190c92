// SPDX-License-Identifier: Apache-2.0
#include "core/hot/samples.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/hot/messages.h"
#include "core/recover/read.h"
#include "core/recover/segments.h"

namespace commlens::arena {

// A process that is killed while it raises the level of a stratum leaves some samples twice: each counts once.
void Reader::take_samples(const Segments& segments) {
  std::map<Key, StratumSamples> strata_by_key;
  segments.each_in<SampleChunk>(Kind::samples, [&](const SampleChunk& chunk, const Segments::Segment&) {
    const std::uint32_t n = chunk.count;
    const bool is_right = known(chunk.key) == chunk.key && n <= SampleChunk::capacity;
    is_damaged_ = is_damaged_ || !is_right;
    if (!is_right || comm_of_key(chunk.key) == 0) return;
    StratumSamples& stratum = strata_by_key[chunk.key];
    stratum.key = chunk.key;
    stratum.level = std::max(stratum.level, chunk.level);
    for (std::uint32_t i = 0; i < n; ++i) {
      Sample sample = chunk.sample[i];
      if (sample.number >= beyond_all || sample.entered >= beyond_all || sample.left >= beyond_all ||
          sample.mpi >= beyond_all) {
        is_damaged_ = true;
        continue;
      }
      if (!is_region(sample.region)) sample.region = 0;
      stratum.samples.push_back(sample);
    }
  });
  const auto is_before = [](const Sample& a, const Sample& b) { return a.number < b.number; };
  const auto is_same = [](const Sample& a, const Sample& b) { return a.number == b.number; };
  for (auto& [key, stratum] : strata_by_key) {
    std::vector<Sample>& samples = stratum.samples;
    std::sort(samples.begin(), samples.end(), is_before);
    samples.erase(std::unique(samples.begin(), samples.end(), is_same), samples.end());
    counted_.samples.push_back(std::move(stratum));
  }
}

// The same for messages.  The tags, and their sums, may have any value.
void Reader::take_messages(const Segments& segments) {
  std::map<std::uint64_t, ChannelSamples> channels;
  segments.each_in<MessageChunk>(Kind::messages, [&](const MessageChunk& chunk, const Segments::Segment&) {
    const std::uint32_t n = chunk.count;
    const bool has_level = chunk.level <= highest_message_level ||
                           (chunk.level == MessageChunk::of_several_threads && !is_of_operations(chunk.key));
    const bool is_right = is_channel(chunk.key) && has_level && n <= MessageChunk::capacity;
    is_damaged_ = is_damaged_ || !is_right;
    if (!is_right) return;
    ChannelSamples& channel = channels[chunk.key];
    channel.key = chunk.key;
    channel.has_several_threads = channel.has_several_threads || chunk.level == MessageChunk::of_several_threads;
    channel.level = std::max(channel.level, chunk.level);
    for (std::uint32_t i = 0; i < n; ++i) {
      MessageSample sample = chunk.sample[i];
      const bool is_whole = sample.number < beyond_all && sample.entered < beyond_all && sample.left < beyond_all &&
                            sample.posted < beyond_all && is_message_call(sample.call);
      is_damaged_ = is_damaged_ || !is_whole;
      if (is_whole) channel.samples.push_back(sample);
    }
  });
  const auto is_before = [](const MessageSample& a, const MessageSample& b) { return a.number < b.number; };
  const auto is_same = [](const MessageSample& a, const MessageSample& b) { return a.number == b.number; };
  for (auto& [key, channel] : channels) {
    std::vector<MessageSample>& samples = channel.samples;
    std::sort(samples.begin(), samples.end(), is_before);
    samples.erase(std::unique(samples.begin(), samples.end(), is_same), samples.end());
    counted_.messages.push_back(std::move(channel));
  }
}

// Returns whether messages are sent or received in calls of a key; 0: unknown.
bool Reader::is_message_call(Key call) {
  if (call == 0) return true;
  if (is_of_region(call) || known(call) != call) return false;
  const std::string_view klass = op_facts[op_of_key(call)].klass;
  return klass == "p2p" || klass == "completion";
}

// Returns whether a channel can be of this process: only communicators with a rank of it have channels.
bool Reader::is_channel(std::uint64_t key) const {
  const std::uint32_t comm = comm_of_channel(key);
  if (is_of_operations(key)) {
    const std::uint32_t operation = peer_of_channel(key), op = op_of_operation(operation);
    return key == operation_key(comm, op, bin_of_operation(operation), index_of_operation(operation)) && comm != 0 &&
           is_comm(comm) && comms_[comm].view.rank >= 0 && op < std::size(op_facts) &&
           op_facts[op].waits != Waits::none;
  }
  const Flow flow = is_of_receiver(key) ? Flow::received : Flow::sent;
  return key == channel_key(flow, comm, peer_of_channel(key)) && comm != 0 && is_comm(comm) &&
         comms_[comm].view.rank >= 0 && peer_of_channel(key) <= std::uint32_t{0x7fffffff};
}

}  // namespace commlens::arena
