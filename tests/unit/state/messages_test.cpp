// SPDX-License-Identifier: Apache-2.0
#include "core/state/messages.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "core/hot/thread.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

constexpr std::uint32_t own = 0, other = 3;
constexpr std::uint64_t block = std::uint64_t{1} << message_block_bits;

Channel& channel(Flow flow, std::uint32_t comm, std::uint32_t peer) {
  ask_for_sampled([](std::uint32_t c) noexcept { return Identity{1000} + c; });
  return *channel_of(this_thread(), make_peer_key(flow, 0, comm, 0, 0), make_peer_place(peer, 0));
}

// Sends or receives messages as the wrappers do; message i takes from 10 i to 10 i + 3.
void pass(Channel& to, std::uint64_t first, std::uint64_t end, int tag = 1) {
  Thread& thread = this_thread();
  for (std::uint64_t i = first; i < end; ++i) {
    thread.current.since = 10 * i;
    if (count_and_check_due(to, tag)) take_message(thread, to, tag, {make_key(1, 7, 4, 0), 10 * i + 3, 0});
  }
}

ChannelSamples samples_of(Flow flow, std::uint32_t comm, std::uint32_t peer) {
  for (ChannelSamples& found : messages_here()) {
    if (found.key == channel_key(flow, comm, peer)) return found;
  }
  return {};
}

std::vector<std::uint64_t> numbers(const ChannelSamples& channel) {
  std::vector<std::uint64_t> all;
  for (const MessageSample& s : channel.samples) all.push_back(s.number);
  return all;
}

}  // namespace

TEST(every_message_is_sampled_until_there_are_many_then_whole_blocks) {
  in_own_process([] {
    Channel& sent = channel(Flow::sent, 1, other);
    pass(sent, 0, most_messages);
    CHECK_EQ(samples_of(Flow::sent, 1, other).samples.size(), std::size_t{most_messages});
    pass(sent, most_messages, 100'000);
    const ChannelSamples found = samples_of(Flow::sent, 1, other);
    CHECK(found.level > 0 && found.samples.size() <= most_messages && found.samples.size() >= most_messages / 3);
    std::set<std::uint64_t> blocks;
    for (const MessageSample& s : found.samples) {
      blocks.insert(s.number / block);
      CHECK_EQ(s.entered, 10 * s.number);
      CHECK_EQ(s.left, 10 * s.number + 3);
      CHECK_EQ(std::uint64_t{s.tags}, s.number);
      CHECK_EQ(s.tag, 1);
    }
    CHECK_EQ(blocks.size() * block, found.samples.size());
    std::uint64_t chosen = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) chosen += is_chosen_message(1001, found.level, i) ? 1 : 0;
    CHECK_EQ(chosen, std::uint64_t{found.samples.size()});
  });
}

TEST(both_ends_and_all_channels_of_a_communicator_sample_the_same_numbers) {
  in_own_process([] {
    constexpr std::uint64_t all = 50'000;
    pass(channel(Flow::sent, 1, other), 0, all);
    pass(channel(Flow::received, 1, own), 0, all);
    pass(channel(Flow::received, 1, other + 1), 0, all / 10);
    ChannelSamples sent = samples_of(Flow::sent, 1, other), received = samples_of(Flow::received, 1, own);
    CHECK_EQ(sent.level, received.level);
    CHECK(numbers(sent) == numbers(received));
    ChannelSamples rare = samples_of(Flow::received, 1, other + 1);
    CHECK(rare.level < sent.level);
    while (rare.level < sent.level) thin_out(rare, 1001, static_cast<std::uint32_t>(rare.samples.size() - 1));
    for (const std::uint64_t n : numbers(rare)) {
      const std::vector<std::uint64_t> of_sent = numbers(sent);
      CHECK(std::binary_search(of_sent.begin(), of_sent.end(), n));
    }
  });
}

TEST(the_memory_is_bounded_however_many_channels_there_are) {
  in_own_process([] {
    for (std::uint32_t peer = 0; peer < 20'000; ++peer) pass(channel(Flow::received, 1, peer), 0, 200);
    std::size_t kept = 0, channels = 0;
    for (const ChannelSamples& found : messages_here()) {
      kept += found.samples.size();
      ++channels;
    }
    CHECK(kept * sizeof(MessageSample) <= most_message_bytes);
    CHECK(channels > 100 && channels * sizeof(Channel) <= most_message_bytes);
  });
}

TEST(messages_that_are_not_counted_have_a_number_and_no_sample) {
  in_own_process([] {
    Thread& thread = this_thread();
    Channel& sent = channel(Flow::sent, 1, other);
    pass(sent, 0, 2);
    const std::uint32_t region = thread.region();
    thread.count_in(uncounted_region);
    pass(sent, 2, 4);
    pass_message(thread, Flow::sent, 1, other, 1);
    thread.count_in(region);
    pass(sent, 5, 6);
    CHECK(numbers(samples_of(Flow::sent, 1, other)) == (std::vector<std::uint64_t>{0, 1, 5}));
    CHECK_EQ(samples_of(Flow::sent, 1, other).samples.back().tags, 5u);
  });
}

TEST(a_channel_that_several_threads_use_has_no_samples_but_is_known) {
  in_own_process([] {
    pass(channel(Flow::sent, 1, other), 0, 100);
    std::thread([] {
      Channel& again = channel(Flow::sent, 1, other);
      CHECK_EQ(&again, &this_thread().call_cache->no_channel);
      pass(again, 100, 200);
    }).join();
    pass(channel(Flow::sent, 1, other), 200, 300);
    const ChannelSamples found = samples_of(Flow::sent, 1, other);
    CHECK(found.has_several_threads);
    CHECK_EQ(found.samples.size(), 1u);
    CHECK_EQ(op_of_key(found.samples.at(0).call), 7u);
  });
}

TEST(a_communicator_whose_numbers_are_unsure_is_not_sampled_any_more) {
  in_own_process([] {
    Channel& sent = channel(Flow::sent, 1, other);
    pass(sent, 0, 100);
    pass(channel(Flow::sent, 2, other), 0, 100);
    stop_messages(1);
    pass(sent, 100, 200);
    CHECK_EQ(&channel(Flow::sent, 1, other + 1), &this_thread().call_cache->no_channel);
    CHECK(samples_of(Flow::sent, 1, other).samples.empty());
    CHECK_EQ(samples_of(Flow::sent, 2, other).samples.size(), 100u);
  });
}

TEST(only_messages_to_one_process_of_a_sampled_communicator_have_a_channel) {
  in_own_process([] {
    Thread& thread = this_thread();
    ask_for_sampled([](std::uint32_t comm) noexcept { return comm == 1 ? Identity{5} : Identity{0}; });
    const auto of = [&](Flow flow, std::uint32_t comm, unsigned shift) {
      return channel_of(thread, make_peer_key(flow, 0, comm, 0, 0), make_peer_place(64, 0, shift));
    };
    CHECK(of(Flow::sent, 1, 0) != &thread.call_cache->no_channel);
    CHECK_EQ(of(Flow::sent, 1, 0), of(Flow::sent, 1, 0));
    CHECK(of(Flow::received, 1, 0) != of(Flow::sent, 1, 0));
    CHECK_EQ(of(Flow::sent, 1, 6), &thread.call_cache->no_channel);
    CHECK_EQ(of(Flow::sent, 2, 0), &thread.call_cache->no_channel);
    CHECK_EQ(of(Flow::put, 1, 0), &thread.call_cache->no_channel);
    pass(thread.call_cache->no_channel, 0, 1000);
    CHECK(messages_here().empty());
  });
}

TEST(cleared_messages_are_gone_and_the_numbers_go_on) {
  in_own_process([] {
    Channel& sent = channel(Flow::sent, 1, other);
    pass(sent, 0, 50);
    forget_messages();
    CHECK(messages_here().empty());
    pass(sent, 50, 52);
    CHECK(numbers(samples_of(Flow::sent, 1, other)) == (std::vector<std::uint64_t>{50, 51}));
  });
}

namespace {

CommView view_of(std::uint32_t comm) {
  CommView view{};
  view.index = comm;
  view.identity = Identity{1000} + comm;
  return view;
}

ChannelSamples operations_here(std::uint64_t key) {
  for (ChannelSamples& found : messages_here()) {
    if (found.key == key) return found;
  }
  return {};
}

}  // namespace

TEST(an_operation_is_sampled_when_it_is_complete) {
  ask_for_sampled([](std::uint32_t c) noexcept { return Identity{1000} + c; });
  Thread& thread = this_thread();
  Channel& operations = *operations_of(view_of(60), 7, 4, false);
  CHECK(&operations == operations_of(view_of(60), 7, 4, false));
  CHECK(&operations != operations_of(view_of(60), 8, 4, false));
  const Key wait = make_key(60, 9, 0, 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    thread.current.since = 100 * (i + 1);
    if (count_and_check_due(operations, 0)) begin_operation(thread, operations, i + 1, SampleFlag::root);
  }
  CHECK_EQ(operations_here(operations.key).samples.size(), 0u);
  // Completed in another order; the second one fails.
  thread.current.since = 1000;
  end_operation(thread, 3, wait, 1010);
  drop_operation(2);
  end_operation(thread, 2, wait, 1020);
  thread.current.since = 2000;
  end_operation(thread, 1, wait, 2010);
  end_operation(thread, 1, wait, 3010);  // complete already
  const ChannelSamples found = operations_here(operations.key);
  CHECK_EQ(found.samples.size(), 2u);
  CHECK_EQ(found.samples[0].number, 0u);
  CHECK_EQ(found.samples[0].posted, 100u);
  CHECK_EQ(found.samples[0].entered, 2000u);
  CHECK_EQ(found.samples[0].left, 2010u);
  CHECK_EQ(found.samples[1].number, 2u);
  CHECK_EQ(found.samples[1].posted, 300u);
  CHECK_EQ(found.samples[1].tag, static_cast<std::int32_t>(SampleFlag::root));
}

TEST(each_persistent_collective_has_a_channel_and_some_of_many_are_sampled) {
  ask_for_sampled([](std::uint32_t c) noexcept { return Identity{1000} + c; });
  std::set<Channel*> made;
  int sampled = 0;
  for (int i = 0; i < 4096; ++i) {
    Channel* const channel = operations_of(view_of(61), 7, 4, true);
    if (channel == nullptr) continue;
    ++sampled;
    made.insert(channel);
    CHECK(i >= 64 || sampled == i + 1);
  }
  CHECK_EQ(static_cast<std::size_t>(sampled), made.size());
  CHECK(sampled > 200 && sampled < 500);  // 64, and about 32 of each doubling after that
}

TEST(a_failed_operation_stops_those_of_its_communicator_but_not_its_messages) {
  Channel& messages = channel(Flow::sent, 62, 1);
  Channel& operations = *operations_of(view_of(62), 7, 4, false);
  Thread& thread = this_thread();
  if (count_and_check_due(operations, 0)) begin_operation(thread, operations, 1, 0);
  stop_operations(62);
  end_operation(thread, 1, make_key(62, 9, 0, 0), 10);
  CHECK_EQ(operations_here(operation_key(62, 7, 4, 0)).samples.size(), 0u);
  CHECK(operations_of(view_of(62), 7, 4, false) == nullptr);
  pass(messages, 0, 4);
  CHECK_EQ(samples_of(Flow::sent, 62, 1).samples.size(), 4u);
}

}  // namespace commlens
