// SPDX-License-Identifier: Apache-2.0
#include "core/state/messages.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>

#include "core/base/locks.h"
#include "core/hot/thread.h"
#include "core/state/sample_store.h"
#include "core/state/samples.h"

namespace commlens {
namespace {

constexpr std::int32_t never = 0x7fffffff;  // value of Channel::skips that postpones the next check by 2^31 messages
constexpr std::uint32_t highest_level = highest_message_level;
constexpr std::uint64_t most_channel_bytes = most_message_bytes / 4;
constexpr std::uint64_t most_chunk_bytes = most_message_bytes - most_channel_bytes;

std::mutex& mutex = locks::samples;
Identity (*sampled_identity)(std::uint32_t) noexcept = nullptr;

// Guarded by the lock:
HandleMap channels;  // channel_key() -> Channel
Channel* all = nullptr;
ListStore<Channel, most_channel_bytes> channel_store;
SampleStore<MessageChunk, arena::Kind::messages> store{most_chunk_bytes};
std::uint32_t limit = most_messages;  // of samples per channel

// An operation that has begun and will be sampled when it is complete.
struct Begun {
  Channel* channel;
  std::uint64_t number;
  Ticks started;
  std::uint32_t flags;
};
std::unordered_map<std::uint64_t, Begun>& begun() {                                // by request
  static auto* const operations = new std::unordered_map<std::uint64_t, Begun>();  // never destroyed
  return *operations;
}
constexpr std::size_t most_begun = 4096;

// Without memory, the operation has no sample.
bool keep_begun(std::uint64_t request, const Begun& operation) noexcept try {
  begun()[request] = operation;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// What has been stopped: the messages, or the operations, of a communicator.
std::uint32_t stop_mark(std::uint64_t channel) noexcept {
  return comm_of_channel(channel) | std::uint32_t{is_of_operations(channel)} << 31;
}
std::set<std::uint32_t>& stopped() {
  static auto* const comms = new std::set<std::uint32_t>();  // never destroyed
  return *comms;
}

bool is_sampled(const Channel& channel) noexcept {
  return channel.key != 0 && channel.level != MessageChunk::of_several_threads;
}

void keep_at_most(Channel& channel, std::uint32_t most) noexcept {
  while (channel.kept > most && channel.level < highest_level) {
    store.raise_level(channel,
                      [&](const MessageSample& s) { return is_chosen_message(channel.seed, channel.level, s.number); });
  }
}

// Makes room for one more chunk.  Returns false if there is none even after all channels have given up what they can.
bool make_room() noexcept {
  while (!store.has_room()) {
    if (limit == fewest_messages) return false;
    limit = std::max(limit / 2, fewest_messages);
    for (Channel* c = all; c != nullptr; c = c->before) keep_at_most(*c, limit);
  }
  return true;
}

void append(Channel& channel, const MessageSample& sample) noexcept {
  if (channel.kept >= limit) keep_at_most(channel, limit - 1);
  if (store.needs_chunk(channel) && !make_room()) return;
  // Both may have raised the level.
  if (is_chosen_message(channel.seed, channel.level, sample.number)) store.append(channel, sample);
}

// Determines the next message to sample, after `next`.
void advance(Channel& channel) noexcept {
  if (!is_sampled(channel)) {
    channel.skips = never;
    return;
  }
  const std::uint64_t after = channel.next + 1;
  std::uint64_t following = after;
  if (!is_chosen_message(channel.seed, channel.level, after)) {
    const std::uint64_t block = after >> message_block_bits, group = block >> channel.level;
    std::uint64_t chosen = chosen_call(channel.seed, channel.level, group);
    if (chosen < block) chosen = chosen_call(channel.seed, channel.level, group + 1);
    following = chosen << message_block_bits;
  }
  channel.skips = static_cast<std::int32_t>(following - after);
  channel.next = following;
}

void stop(Channel& channel) noexcept {
  store.clear(channel);
  channel.key = 0;
}

// Marks a channel as used by several threads, also for those who read the arena.  The order of its messages is unknown;
// one sample remains, from which the profile takes procedure and size bin.
void leave_out(Channel& channel) noexcept {
  if (!is_sampled(channel)) return;
  const MessageSample one = channel.first != nullptr ? channel.first->sample[0] : MessageSample{};
  store.clear(channel);
  channel.level = MessageChunk::of_several_threads;
  if (make_room()) store.append(channel, one);
}

Channel* new_channel(std::uint64_t key, Identity seed) {
  Channel* const channel = channel_store.take();
  if (channel == nullptr) return nullptr;
  if (!channels.put(key, channel)) {
    stopped().insert(stop_mark(key));  // a later call of this channel would begin with 0
    return nullptr;
  }
  channel->key = key;
  channel->seed = seed;
  channel->before = all;
  all = channel;
  return channel;
}

}  // namespace

void ask_for_sampled(Identity (*identity)(std::uint32_t comm) noexcept) noexcept { sampled_identity = identity; }

Channel* channel_of(Thread& thread, PeerKey key, PeerPlace place) noexcept try {
  const Flow flow = flow_of(key);
  const bool is_one = shift_of(place) == 0 && peer_of(place) != no_peer;
  if (!is_one || (flow != Flow::sent && flow != Flow::received) || sampled_identity == nullptr)
    return &thread.call_cache->no_channel;
  const std::uint32_t comm = comm_of_peer(key);
  const Identity seed = sampled_identity(comm);
  if (seed == 0 || !is_sampling_on()) return &thread.call_cache->no_channel;
  const std::uint64_t of = channel_key(flow, comm, peer_of(place));
  const std::lock_guard<std::mutex> lock(mutex);
  if (stopped().count(comm) != 0) return &thread.call_cache->no_channel;
  auto* channel = static_cast<Channel*>(channels.find(of));
  if (channel == nullptr) {
    channel = new_channel(of, seed);
    if (channel != nullptr) channel->thread = thread.number;
  }
  if (channel != nullptr && channel->thread == thread.number) return channel;
  if (channel != nullptr) leave_out(*channel);
  return &thread.call_cache->no_channel;
} catch (const std::bad_alloc&) {
  stop_messages(comm_of_peer(key));
  return &thread.call_cache->no_channel;
}

namespace {

// A call that was not timed cannot wait: it lasts no time.
Ticks entered_at(const Thread& thread, Ticks left) noexcept {
  return thread.current.is_untimed != 0 ? left : thread.current.since;
}

}  // namespace

void take_message(Thread& thread, Channel& channel, int tag, const MessageCall& call) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool is_chosen = is_sampled(channel) && is_chosen_message(channel.seed, channel.level, channel.next);
  if (is_chosen && thread.region() != uncounted_region) {
    append(channel, {channel.next, entered_at(thread, call.left), call.left, call.posted, call.key, tag,
                     channel.tags - static_cast<std::uint32_t>(tag)});
  }
  advance(channel);
}

void pass_message(Thread& thread, Flow flow, std::uint32_t comm, std::uint32_t peer, int tag) noexcept {
  Channel& channel = *channel_of(thread, make_peer_key(flow, 0, comm, 0, 0), make_peer_place(peer, 0));
  if (!count_and_check_due(channel, tag)) return;
  const std::lock_guard<std::mutex> lock(mutex);
  advance(channel);
}

namespace {

// Stops all channels of a mark.
void stop_all(std::uint32_t mark) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!stopped().insert(mark).second) return;
  for (Channel* c = all; c != nullptr; c = c->before) {
    if (c->key != 0 && stop_mark(c->key) == mark) stop(*c);
  }
} catch (const std::bad_alloc&) {
  sampled_identity = nullptr;  // no new channels, of any communicator
}

// Returns the index of the next persistent request of a kind, or 0 if it is not sampled: all of the first 64 are, then
// half of the next 64, and so on, as for communicators (state/samples.h).
std::uint32_t next_index(std::uint64_t kind, Identity comm) {
  constexpr std::uint32_t always_sampled = 64;
  static auto* const made = new std::unordered_map<std::uint64_t, std::uint32_t>();  // never destroyed
  const std::uint32_t n = (*made)[kind]++;
  std::uint32_t level = 0;
  while (n >> level >= always_sampled) ++level;
  const bool is_chosen = (combine(comm, n) & ((std::uint64_t{1} << level) - 1)) == 0;
  return is_chosen && n < most_operation_index ? n + 1 : 0;
}

}  // namespace

void stop_messages(std::uint32_t comm) noexcept { stop_all(comm); }
void stop_operations(std::uint32_t comm) noexcept { stop_all(stop_mark(operation_key(comm, 0, 0, 0))); }

Channel* operations_of(const CommView& comm, std::uint32_t op, std::uint32_t bin, bool is_persistent) noexcept try {
  if (sampled_identity == nullptr) return nullptr;
  std::uint64_t key = operation_key(comm.index, op, bin, 0);
  // Without the lock, because calls that are not cached come here each time.
  auto* const seen = is_persistent ? nullptr : static_cast<Channel*>(channels.find(key));
  if (seen != nullptr && seen->key != 0) return seen;  // key 0: stopped
  const std::lock_guard<std::mutex> lock(mutex);
  if (stopped().count(stop_mark(key)) != 0) return nullptr;
  if (is_persistent) {
    const std::uint32_t index = next_index(key, comm.identity);
    if (index == 0) return nullptr;
    key = operation_key(comm.index, op, bin, index);
  }
  auto* const known = static_cast<Channel*>(channels.find(key));
  return known != nullptr ? known : new_channel(key, comm.identity);
} catch (const std::bad_alloc&) {
  stop_operations(comm.index);
  return nullptr;
}

void begin_operation(Thread& thread, Channel& channel, std::uint64_t request, std::uint32_t flags) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool is_chosen = is_sampled(channel) && is_chosen_message(channel.seed, channel.level, channel.next);
  if (is_chosen && request != 0 && thread.region() != uncounted_region && begun().size() < most_begun) {
    keep_begun(request, {&channel, channel.next, thread.current.since, flags});
  }
  advance(channel);
}

void end_operation(Thread& thread, std::uint64_t request, Key call, Ticks left) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = begun().find(request);
  if (found == begun().end()) return;
  const Begun operation = found->second;
  begun().erase(found);
  Channel& channel = *operation.channel;
  const bool is_chosen = is_sampled(channel) && is_chosen_message(channel.seed, channel.level, operation.number);
  if (!is_chosen || thread.region() == uncounted_region) return;
  // A thread may have moved to a core whose counter is slightly behind.
  const Ticks entered = entered_at(thread, left), started = std::max<Ticks>(1, std::min(operation.started, entered));
  append(channel, {operation.number, entered, left, started, call, static_cast<std::int32_t>(operation.flags), 0});
}

void drop_operation(std::uint64_t request) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  begun().erase(request);
}

void thin_out(ChannelSamples& channel, Identity comm, std::uint32_t most) {
  while (!channel.has_several_threads && channel.samples.size() > most && channel.level < highest_level) {
    ++channel.level;
    const auto is_out = [&](const MessageSample& s) { return !is_chosen_message(comm, channel.level, s.number); };
    channel.samples.erase(std::remove_if(channel.samples.begin(), channel.samples.end(), is_out),
                          channel.samples.end());
  }
}

std::vector<ChannelSamples> messages_here() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<ChannelSamples> samples;
  for (const Channel* channel = all; channel != nullptr; channel = channel->before) {
    if (channel->key == 0 || channel->kept == 0) continue;
    const bool has_several_threads = channel->level == MessageChunk::of_several_threads;
    ChannelSamples of_channel{channel->key, channel->level, has_several_threads, {}};
    for (const MessageChunk* c = channel->first; c != nullptr; c = c->next) {
      of_channel.samples.insert(of_channel.samples.end(), c->sample, c->sample + c->count);
    }
    // Operations may complete in another order than they were started.
    const auto is_before = [](const MessageSample& a, const MessageSample& b) { return a.number < b.number; };
    if (is_of_operations(channel->key)) std::sort(of_channel.samples.begin(), of_channel.samples.end(), is_before);
    samples.push_back(std::move(of_channel));
  }
  return samples;
}

void forget_messages() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Channel* c = all; c != nullptr; c = c->before) {
    if (is_sampled(*c)) store.clear(*c);
  }
}

}  // namespace commlens
