// SPDX-License-Identifier: Apache-2.0
#include "core/profile/messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "core/base/wire.h"
#include "core/hot/messages.h"
#include "core/profile/profile.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

// Times are in ns; a tick lasts half of one.
MessageRow row(std::uint64_t number, std::uint32_t op, Ns entered, Ns spent, int tag = 1, bool has_posted = true) {
  MessageRow made;
  made.number = number;
  made.entered = 2 * entered;
  made.left = made.entered + 2 * spent;
  made.posted = has_posted ? made.entered : 0;
  made.comm = 1;
  made.op = op;
  made.tag = tag;
  made.tags = static_cast<std::uint32_t>(number);
  return made;
}

// Adds one end of the channel from one rank to another.
ChannelEnd& add_end(Profile& profile, int from, int to, bool is_receiver, std::vector<MessageRow> rows) {
  ChannelEnd& end = profile.channels.emplace_back();
  end.comm = 1;
  end.from = from;
  end.to = to;
  end.is_receiver = is_receiver;
  end.rank = is_receiver ? to : from;
  end.messages = end.all = rows.size();
  end.samples = std::move(rows);
  return end;
}

Profile profile_of(int ranks, int machines = 1) {
  Profile profile;
  profile.comms.resize(2);
  profile.comms[1].size = ranks;
  for (int r = 0; r < ranks; ++r) {
    Profile::Rank rank;
    rank.facts.rank = r;
    rank.clock = {static_cast<Identity>(r % machines + 1), 0.5, {}};
    profile.ranks.push_back(rank);
  }
  return profile;
}

// Adds what a rank has sampled of the operations of a procedure with 64 to 127 bytes.
void add_operations(Profile& profile, std::uint32_t op, int rank, std::vector<MessageRow> samples) {
  ChannelEnd end;
  end.comm = 1;
  end.operation = peer_of_channel(operation_key(1, op, 7, 0));
  end.from = end.to = end.rank = rank;
  end.messages = end.all = samples.size();
  end.samples = std::move(samples);
  profile.channels.push_back(end);
}

// An operation that a call of MPI_Wait completes.
MessageRow operation(std::uint64_t number, Ticks started, Ticks entered, Ticks spent, std::uint32_t flags = 0) {
  MessageRow made = row(number, op::MPI_Wait, entered, spent, static_cast<int>(flags), false);
  made.posted = 2 * started;
  return made;
}

// Adds the counters of the calls of a rank.
void count(Profile& profile, std::uint32_t op, int rank, std::uint64_t calls, Ns time) {
  Profile::Row counted{};
  counted.key = static_cast<std::uint32_t>(profile.keys.size());
  counted.rank = rank;
  counted.calls = calls;
  counted.time = time;
  profile.keys.push_back({1, op, 0, 0, 0, 0, 0, 0, 0});
  profile.rows.push_back(counted);
}

void split_all(Profile& profile) {
  settle_channels(profile);
  const SplitMessages messages = split_messages(profile.channels);
  sum_up(profile, messages, add_waiting(profile, messages));
}

WaitingRow of_rank(const Profile& profile, std::uint32_t op, int rank) {
  WaitingRow sum{};
  for (const WaitingRow& found : profile.waiting) {
    if (found.op != op || found.rank != rank) continue;
    sum.samples += found.samples;
    sum.last += found.last;
    sum.time += found.time;
    sum.waiting += found.waiting;
    sum.late += found.late;
    sum.behind += found.behind;
  }
  return sum;
}

std::uint64_t unsplit(const Profile& profile, Unsplit reason) {
  std::uint64_t calls = 0;
  for (const UnsplitRow& found : profile.unsplit) calls += found.reason == reason ? found.calls : 0;
  return calls;
}

}  // namespace

TEST(a_receiver_waits_until_the_sender_enters_its_send) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false, {row(0, op::MPI_Send, 50'000, 200), row(1, op::MPI_Send, 100'000, 200)});
  add_end(profile, 0, 1, true, {row(0, op::MPI_Recv, 10'000, 41'000), row(1, op::MPI_Recv, 104'000, 300)});
  count(profile, op::MPI_Recv, 1, 2, 41'300);
  count(profile, op::MPI_Send, 0, 2, 400);
  split_all(profile);
  const WaitingRow receiver = of_rank(profile, op::MPI_Recv, 1), sender = of_rank(profile, op::MPI_Recv, 0);
  CHECK_EQ(receiver.samples, 2u);
  CHECK_EQ(receiver.time, 41'300u);
  CHECK_EQ(receiver.waiting, 40'000u);
  CHECK_EQ(receiver.behind, 4'000u);
  CHECK_EQ(sender.last, 1u);
  CHECK_EQ(sender.late, 40'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Send, 0).waiting, 0u);  // both were buffered
  const auto found = std::find_if(profile.sampled.begin(), profile.sampled.end(),
                                  [](const SampledRow& r) { return r.op == op::MPI_Recv; });
  CHECK_EQ(found->samples, 2u);
  CHECK_EQ(found->of, 2u);
  CHECK_EQ(found->waiting, 40'000u);
  CHECK(found->has_error && found->error == 0);
}

TEST(a_blocking_sender_waits_until_the_receive_is_posted) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false,
          {row(0, op::MPI_Send, 10'000, 31'000), row(1, op::MPI_Send, 90'000, 500), row(2, op::MPI_Ssend, 200'000, 80),
           row(3, op::MPI_Isend, 250'000, 80)});
  add_end(profile, 0, 1, true,
          {row(0, op::MPI_Recv, 40'000, 1'200), row(1, op::MPI_Recv, 95'000, 300),
           row(2, op::MPI_Wait, 199'000, 900, 1, false), row(3, op::MPI_Wait, 252'000, 900, 1, false)});
  count(profile, op::MPI_Send, 0, 2, 31'500);
  count(profile, op::MPI_Recv, 1, 2, 1'500);
  count(profile, op::MPI_Wait, 1, 2, 1'800);
  split_all(profile);
  const WaitingRow sender = of_rank(profile, op::MPI_Send, 0);
  CHECK_EQ(sender.samples, 2u);
  CHECK_EQ(sender.waiting, 30'000u);  // the second was buffered: it returned before the receive was posted
  CHECK_EQ(of_rank(profile, op::MPI_Send, 1).late, 30'000u);
  CHECK_EQ(unsplit(profile, Unsplit::posting), 1u);
  CHECK_EQ(of_rank(profile, op::MPI_Isend, 0).samples, 0u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).waiting, 900u);  // no longer than the call
}

TEST(of_the_messages_that_one_call_completes_the_latest_counts) {
  Profile profile = profile_of(3);
  for (const int from : {0, 2}) {
    const Ns sent = from == 0 ? 30'000 : 70'000;
    add_end(profile, from, 1, false, {row(0, op::MPI_Isend, sent, 100)});
    add_end(profile, from, 1, true, {row(0, op::MPI_Waitall, 10'000, 65'000)});
  }
  count(profile, op::MPI_Waitall, 1, 1, 65'000);
  split_all(profile);
  const WaitingRow receiver = of_rank(profile, op::MPI_Waitall, 1);
  CHECK_EQ(receiver.samples, 1u);
  CHECK_EQ(receiver.waiting, 60'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Waitall, 0).last, 0u);
  CHECK_EQ(of_rank(profile, op::MPI_Waitall, 2).last, 1u);
}

TEST(if_a_call_waits_for_none_of_its_messages_the_first_one_tells_how_far_it_was_behind) {
  constexpr std::uint64_t calls = 8, of_call = 8;
  Profile profile = profile_of(2);
  std::vector<MessageRow> sent, received;
  for (std::uint64_t i = 0; i < calls * of_call; ++i) {
    const Ns begin = 10'000 * (i / of_call + 1);
    sent.push_back(row(i, op::MPI_Isend, begin + 100 * (i % of_call), 50));
    received.push_back(row(i, op::MPI_Waitall, begin + 5'000, 100));
  }
  add_end(profile, 0, 1, false, std::move(sent));
  add_end(profile, 0, 1, true, std::move(received));
  count(profile, op::MPI_Waitall, 1, calls, calls * 100);
  split_all(profile);
  const WaitingRow receiver = of_rank(profile, op::MPI_Waitall, 1);
  CHECK_EQ(receiver.samples, calls);
  CHECK_EQ(receiver.waiting, 0u);
  CHECK_EQ(receiver.behind, calls * 5'000);
}

TEST(tags_tell_which_message_is_which_within_a_block) {
  Profile profile = profile_of(2);
  std::vector<MessageRow> sent, received;
  for (std::uint64_t i = 0; i < 8; ++i) {
    // Two messages each time, of which the receiver takes the second one first.
    const Ns at = 100'000 * (i / 2 + 1);
    const std::uint32_t before = static_cast<std::uint32_t>(i / 2 * 11);
    const bool is_second = i % 2 == 1;
    sent.push_back(row(i, op::MPI_Send, at + (is_second ? 40'000 : 0), 100, is_second ? 10 : 1));
    sent.back().tags = before + (is_second ? 1 : 0);
    received.push_back(row(i, op::MPI_Recv, is_second ? at + 41'000 : at - 1'000, 45'000, is_second ? 1 : 10));
    received.back().tags = before + (is_second ? 10 : 0);
  }
  add_end(profile, 0, 1, false, sent);
  add_end(profile, 0, 1, true, received);
  count(profile, op::MPI_Recv, 1, 8, 8 * 45'000);
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Recv, 1).waiting, Ns{4 * 41'000});
  CHECK(profile.unsplit.empty());
  // The samples begin in the middle of a step: the first message is left out.
  for (ChannelEnd& end : profile.channels) end.samples.erase(end.samples.begin());
  profile.waiting.clear();
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Recv, 1).samples, 6u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 2u);
  for (MessageRow& one : profile.channels.at(1).samples) one.tags += 3;  // another order before all of them
  profile.waiting.clear();
  profile.unsplit.clear();
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Recv, 1).samples, 0u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 14u);
}

TEST(samples_that_the_other_side_lacks_are_left_out) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false, {row(0, op::MPI_Send, 20'000, 10), row(2, op::MPI_Send, 80'000, 10)});
  add_end(profile, 0, 1, true, {row(0, op::MPI_Recv, 10'000, 11'000), row(1, op::MPI_Recv, 40'000, 11'000)});
  count(profile, op::MPI_Recv, 1, 3, 33'000);
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Recv, 1).samples, 1u);
  CHECK_EQ(unsplit(profile, Unsplit::members), 2u);
  Profile alone = profile_of(2);
  add_end(alone, 0, 1, true, {row(0, op::MPI_Recv, 10'000, 11'000)});
  split_all(alone);
  CHECK_EQ(unsplit(alone, Unsplit::members), 1u);
}

TEST(a_receive_that_returns_before_the_send_is_not_of_this_message) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false, {row(0, op::MPI_Send, 50'000, 10)});
  add_end(profile, 0, 1, true, {row(0, op::MPI_Recv, 10'000, 11'000)});
  count(profile, op::MPI_Recv, 1, 1, 11'000);
  split_all(profile);
  CHECK(profile.waiting.empty() || of_rank(profile, op::MPI_Recv, 1).samples == 0);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 1u);
}

TEST(channels_of_several_threads_are_counted_as_left_out) {
  Profile profile = profile_of(2);
  ChannelEnd& sent = add_end(profile, 0, 1, false, {row(5, op::MPI_Ssend, 50'000, 10)});
  sent.has_several_threads = true;
  sent.messages = 77;
  add_end(profile, 0, 1, true, {row(5, op::MPI_Recv, 10'000, 41'000)});
  split_all(profile);
  CHECK(profile.waiting.empty() && profile.sampled.empty());
  CHECK_EQ(profile.unsplit.size(), 1u);
  CHECK_EQ(profile.unsplit.at(0).op, std::uint32_t{op::MPI_Ssend});
  CHECK_EQ(unsplit(profile, Unsplit::threads), 77u);
}

TEST(messages_between_machines_need_clocks_that_are_related) {
  Profile profile = profile_of(2, 2);
  const auto add_ends = [&] {
    add_end(profile, 0, 1, false, {row(0, op::MPI_Isend, 50'000, 100)});
    add_end(profile, 0, 1, true, {row(0, op::MPI_Recv, 1'010'000, 41'000)});
  };
  add_ends();
  count(profile, op::MPI_Recv, 1, 1, 41'000);
  split_all(profile);
  CHECK_EQ(unsplit(profile, Unsplit::machines), 1u);
  profile.unsplit.clear();
  for (Profile::Rank& r : profile.ranks) {
    r.clock.line.is_known = true;
    r.clock.line.ns_per_tick = 0.5;
    r.clock.line.from = r.facts.rank == 1 ? 2'000'000 : 0;  // the second clock is a millisecond ahead
  }
  profile.ranks[1].clock.line.error = 5'000;
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Recv, 1).waiting, 40'000u);
  const SampledRow& found = profile.sampled.at(0);
  CHECK_EQ(found.across, 1u);
  CHECK_EQ(found.by_clock, 1u);
  CHECK_EQ(found.clock, 5'000u);
  CHECK_EQ(found.error, 5'000u);
}

TEST(some_blocks_stand_for_all_and_calls_without_a_message_for_none) {
  std::mt19937_64 random(7);
  int covered = 0, runs = 0;
  for (Identity seed = 1; seed <= 100; ++seed) {
    Profile profile = profile_of(2);
    std::exponential_distribution<double> wait(1.0 / 20'000), rest(1.0 / 5'000);
    constexpr std::uint64_t messages = 4'000;
    std::vector<MessageRow> sent, received;
    Ns truth = 0, time = 0, at = 0;
    for (std::uint64_t i = 0; i < messages; ++i) {
      at += 100'000;
      const auto waiting = static_cast<Ns>(wait(random)), spent = waiting + static_cast<Ns>(rest(random)) + 50;
      truth += waiting;
      time += spent;
      if (!is_chosen_message(seed, 3, i)) continue;
      sent.push_back(row(i, op::MPI_Send, at + waiting, 20));
      received.push_back(row(i, op::MPI_Wait, at, spent));
    }
    // As many waits complete sends, and take as long.
    count(profile, op::MPI_Wait, 1, 2 * messages, 2 * time);
    for (const bool is_receiver : {false, true}) {
      ChannelEnd& end = add_end(profile, 0, 1, is_receiver, is_receiver ? received : sent);
      end.messages = end.all = messages;
    }
    split_all(profile);
    const auto found = std::find_if(profile.sampled.begin(), profile.sampled.end(),
                                    [](const SampledRow& r) { return r.op == op::MPI_Wait; });
    CHECK_EQ(found->of, messages);
    const double estimate =
        static_cast<double>(found->waiting) / static_cast<double>(found->time) * 2 * static_cast<double>(time);
    covered += std::abs(estimate - static_cast<double>(truth)) <= 2.05 * static_cast<double>(found->error) ? 1 : 0;
    ++runs;
  }
  CHECK_EQ(runs, 100);
  CHECK(covered >= 87 && covered <= 100);
}

TEST(receives_take_messages_in_the_order_in_which_they_were_posted) {
  Profile profile = profile_of(2);
  // Two receives are posted, then the second one is completed first.
  std::vector<MessageRow> sent, received;
  for (std::uint64_t i = 0; i < 8; i += 2) {
    const Ns at = 1'000'000 * (i + 1);
    sent.push_back(row(i, op::MPI_Send, at + 50'000, 100));
    sent.push_back(row(i + 1, op::MPI_Send, at + 90'000, 100));
    received.push_back(row(i, op::MPI_Wait, at, 91'000));
    received.push_back(row(i + 1, op::MPI_Wait, at + 92'000, 100));
    received[i].posted = 2 * (at - 1'000);
    received[i + 1].posted = 2 * (at - 2'000);
  }
  add_end(profile, 0, 1, false, sent);
  add_end(profile, 0, 1, true, received);
  count(profile, op::MPI_Wait, 1, 8, 4 * 91'100);
  split_all(profile);
  // The last message is at the edge: its receive may have changed places with one of which there is no sample.
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).samples, 7u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 2u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).waiting, Ns{3 * 90'000});
}

TEST(a_call_that_completes_messages_of_several_channels_stands_for_no_more_than_all_calls) {
  // Channels of 2,000 messages: of one all have samples, of the others each second or fourth block.
  constexpr std::uint64_t calls = 2'000;
  Profile profile = profile_of(5);
  Ns time = 0, truth = 0;
  for (int from = 1; from < 5; ++from) {
    std::vector<MessageRow> sent, received;
    for (std::uint64_t i = 0; i < calls; ++i) {
      const Ns at = 100'000 * (i + 1);
      const Ns waiting = i % 5 == 0 ? 40'000 : 0;
      time += from == 1 ? 50'000 : 0;
      truth += from == 1 ? waiting : 0;
      if (!is_chosen_message(static_cast<Identity>(from), static_cast<std::uint32_t>(from == 1 ? 0 : from - 2), i))
        continue;
      sent.push_back(row(i, op::MPI_Isend, at + waiting, 10));
      received.push_back(row(i, op::MPI_Waitall, at, 50'000));
    }
    for (const bool is_receiver : {false, true}) {
      ChannelEnd& end = add_end(profile, from, 0, is_receiver, is_receiver ? received : sent);
      end.messages = calls;
      end.all = 4 * calls;
    }
  }
  count(profile, op::MPI_Waitall, 0, calls, time);
  split_all(profile);
  const WaitingRow found = of_rank(profile, op::MPI_Waitall, 0);
  CHECK_EQ(profile.sampled.at(0).of, calls);
  const double estimate =
      static_cast<double>(found.waiting) / static_cast<double>(found.time) * static_cast<double>(time);
  CHECK(std::abs(estimate - static_cast<double>(truth)) < 0.02 * static_cast<double>(truth));
}

TEST(blocks_of_ranks_find_together_what_one_finds) {
  const auto fill = [](Profile& profile, int rank) {
    const auto sent = [&](int r) { return row(0, op::MPI_Isend, static_cast<Ns>(20'000 + 1'000 * r), 10); };
    const int right = (rank + 1) % 4, left = (rank + 3) % 4;
    add_end(profile, rank, right, false, {sent(rank)});
    add_end(profile, left, rank, true, {row(0, op::MPI_Recv, 10'000, 30'000)});
    count(profile, op::MPI_Recv, rank, 1, 30'000);
  };
  Profile whole = profile_of(4);
  for (int r = 0; r < 4; ++r) fill(whole, r);
  split_all(whole);
  std::vector<Profile> parts{profile_of(4), profile_of(4)};
  ChannelEnds all;
  for (int p = 0; p < 2; ++p) {
    Profile& part = parts[static_cast<std::size_t>(p)];
    part.ranks = {whole.ranks[static_cast<std::size_t>(2 * p)], whole.ranks[static_cast<std::size_t>(2 * p + 1)]};
    for (int r = 2 * p; r < 2 * p + 2; ++r) fill(part, r);
    settle_channels(part);
    WireWriter out;
    write_channels(out, part.channels);
    WireReader in(out.bytes().data(), out.bytes().size());
    add_channels(all, read_channels(in));
  }
  const SplitMessages messages = split_messages(all);
  std::vector<MessageTime> times = add_waiting(parts[0], messages);
  const std::vector<MessageTime> more = add_waiting(parts[1], messages);
  CHECK_EQ(times.size(), more.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i].time += more[i].time;
    times[i].waiting += more[i].waiting;
    times[i].calls += more[i].calls;
    times[i].mixed += more[i].mixed;
  }
  sum_up(parts[0], messages, times);
  for (int r = 0; r < 4; ++r) {
    const WaitingRow one = of_rank(whole, op::MPI_Recv, r),
                     part = of_rank(parts[static_cast<std::size_t>(r / 2)], op::MPI_Recv, r);
    CHECK_EQ(one.waiting, part.waiting);
    CHECK_EQ(one.late, part.late);
    CHECK_EQ(one.last, part.last);
  }
  CHECK_EQ(whole.sampled.at(0).waiting, parts[0].sampled.at(0).waiting);
  CHECK_EQ(whole.sampled.at(0).waiting, Ns{4 * 10'000 + 1'000 * (0 + 1 + 2 + 3)});
}

TEST(damaged_channels_read_as_none) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false, {row(0, op::MPI_Send, 50'000, 10)});
  settle_channels(profile);
  WireWriter out;
  write_channels(out, profile.channels);
  const std::vector<char>& bytes = out.bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    WireReader in(bytes.data(), n);
    CHECK(read_channels(in).empty());
  }
}

TEST(a_call_that_completes_a_collective_waits_until_the_last_has_started_it) {
  Profile profile = profile_of(3);
  add_operations(profile, op::MPI_Iallreduce, 0, {operation(0, 10'000, 20'000, 50'000)});
  add_operations(profile, op::MPI_Iallreduce, 1, {operation(0, 60'000, 61'000, 9'000)});
  add_operations(profile, op::MPI_Iallreduce, 2, {operation(0, 11'000, 65'000, 7'000)});
  for (int rank = 0; rank < 3; ++rank) count(profile, op::MPI_Wait, rank, 1, rank == 0 ? 50'000 : 9'000);
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 0).waiting, 40'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 0).time, 50'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).waiting, 0u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).late, 40'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 2).waiting, 0u);
  CHECK_EQ(profile.unsplit.size(), 0u);
}

TEST(operations_with_a_root_wait_for_it_or_it_for_the_others) {
  Profile profile = profile_of(2);
  add_operations(profile, op::MPI_Ibcast, 0, {operation(0, 50'000, 51'000, 9'000, SampleFlag::root)});
  add_operations(profile, op::MPI_Ibcast, 1, {operation(0, 10'000, 11'000, 45'000)});
  add_operations(profile, op::MPI_Ireduce, 0, {operation(0, 100'000, 101'000, 70'000, SampleFlag::root)});
  add_operations(profile, op::MPI_Ireduce, 1, {operation(0, 161'000, 162'000, 3'000)});
  count(profile, op::MPI_Wait, 0, 2, 79'000);
  count(profile, op::MPI_Wait, 1, 2, 48'000);
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 0).waiting, 60'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).waiting, 39'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 0).late, 39'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).late, 60'000u);
}

TEST(operations_that_cannot_be_split_are_counted_once_with_the_reason) {
  Profile profile = profile_of(2);
  add_operations(profile, op::MPI_Iallreduce, 0, {operation(0, 10, 20, 50'000), operation(1, 60'000, 60'010, 100)});
  // The first has no second member; in the second one, a member was done long before the other began.
  add_operations(profile, op::MPI_Iallreduce, 1, {operation(1, 90'000, 90'010, 100)});
  // The root is unknown.
  add_operations(profile, op::MPI_Ibcast, 0, {operation(0, 100'000, 100'010, 100)});
  add_operations(profile, op::MPI_Ibcast, 1, {operation(0, 100'000, 100'010, 100)});
  count(profile, op::MPI_Wait, 0, 3, 50'200);
  count(profile, op::MPI_Wait, 1, 2, 200);
  split_all(profile);
  CHECK_EQ(profile.waiting.size(), 0u);
  CHECK_EQ(unsplit(profile, Unsplit::members), 2u);
  CHECK_EQ(unsplit(profile, Unsplit::unordered), 1u);
}

TEST(in_a_prefix_sum_a_rank_waits_for_those_below_it) {
  Profile profile = profile_of(3);
  const Ns entered[] = {30'000, 10'000, 50'000}, spent[] = {100, 25'000, 300};
  for (int rank = 0; rank < 3; ++rank) {
    MessageRow one = operation(0, entered[rank], entered[rank], spent[rank]);
    one.op = op::MPI_Scan;
    one.bin = 7;
    add_operations(profile, op::MPI_Scan, rank, {one});
    profile.keys.push_back({1, op::MPI_Scan, 7, 0, 0, 0, 0, 0, 0});
    Profile::Row counted{};
    counted.key = static_cast<std::uint32_t>(profile.keys.size() - 1);
    counted.rank = rank;
    counted.calls = 1;
    counted.time = spent[rank];
    profile.rows.push_back(counted);
  }
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Scan, 0).waiting, 0u);
  CHECK_EQ(of_rank(profile, op::MPI_Scan, 1).waiting, 20'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Scan, 2).waiting, 0u);  // the last, but nobody is above it
  CHECK_EQ(of_rank(profile, op::MPI_Scan, 0).late, 20'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Scan, 2).late, 0u);
}

TEST(the_longest_wait_of_a_call_that_completes_an_operation_and_a_message_counts) {
  Profile profile = profile_of(2);
  add_end(profile, 0, 1, false, {row(0, op::MPI_Send, 30'000, 200)});
  add_end(profile, 0, 1, true, {row(0, op::MPI_Waitall, 10'000, 60'000, 1, false)});
  MessageRow first = operation(0, 9'000, 10'000, 60'000), second = operation(0, 50'000, 51'000, 3'000);
  first.op = op::MPI_Waitall;
  add_operations(profile, op::MPI_Iallreduce, 1, {first});
  add_operations(profile, op::MPI_Iallreduce, 0, {second});
  count(profile, op::MPI_Waitall, 1, 1, 60'000);
  count(profile, op::MPI_Wait, 0, 1, 3'000);
  count(profile, op::MPI_Send, 0, 1, 200);
  split_all(profile);
  CHECK_EQ(of_rank(profile, op::MPI_Waitall, 1).samples, 1u);
  CHECK_EQ(of_rank(profile, op::MPI_Waitall, 1).waiting, 40'000u);
}

namespace {

// A line of ranks, which exchange data with those next to them.
Profile line_of_ranks(const std::vector<Ns>& entered, const std::vector<Ns>& spent) {
  const int ranks = static_cast<int>(entered.size());
  Profile profile = profile_of(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    add_operations(profile, op::MPI_Ineighbor_alltoall, rank, {operation(0, entered[i], entered[i], spent[i])});
    ChannelEnd& end = profile.channels.back();
    end.sources = 0;
    for (const int other : {rank - 1, rank + 1}) {
      if (other < 0 || other >= ranks) continue;
      end.destinations.push_back(other);
      ++end.sources;
    }
    count(profile, op::MPI_Wait, rank, 1, spent[i]);
  }
  return profile;
}

}  // namespace

TEST(in_a_neighbourhood_collective_a_rank_waits_for_the_neighbours_that_send_to_it) {
  Profile profile = line_of_ranks({10'000, 50'000, 20'000, 12'000}, {41'000, 300, 31'000, 9'000});
  split_all(profile);
  const Ns waiting[] = {40'000, 0, 30'000, 8'000};
  for (int rank = 0; rank < 4; ++rank) CHECK_EQ(of_rank(profile, op::MPI_Wait, rank).waiting, waiting[rank]);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 1).late, 70'000u);
  CHECK_EQ(of_rank(profile, op::MPI_Wait, 2).late, 8'000u);
}

TEST(a_neighbourhood_collective_with_unknown_neighbours_is_not_split) {
  for (const int sources : {-1, 2}) {
    Profile profile = line_of_ranks({10'000, 50'000}, {41'000, 300});
    profile.channels.front().sources = sources;
    split_all(profile);
    CHECK_EQ(profile.waiting.size(), 0u);
    CHECK_EQ(unsplit(profile, Unsplit::members), 1u);
  }
}

}  // namespace commlens
