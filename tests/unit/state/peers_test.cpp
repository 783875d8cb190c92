// SPDX-License-Identifier: Apache-2.0
#include "core/state/peers.h"

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/hot/peers.h"
#include "core/state/counted.h"
#include "core/state/notices.h"
#include "core/state/slices.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

using Pair = std::tuple<Flow, std::uint32_t, std::uint32_t, std::uint32_t>;  // flow, bin, communicator, peer

struct Traffic {
  std::uint64_t messages = 0, bytes = 0;
  bool operator==(const Traffic& other) const { return messages == other.messages && bytes == other.bytes; }
};
std::ostream& operator<<(std::ostream& out, const Traffic& t) { return out << t.messages << " of " << t.bytes; }

Traffic all_traffic() {
  Traffic traffic;
  each_peer([&traffic](const PeerCell& cell) {
    traffic.messages += cell.messages;
    traffic.bytes += cell.bytes;
  });
  return traffic;
}

std::atomic<int> asked{0};
std::int32_t reversed(std::uint32_t comm, std::uint32_t peer) noexcept {
  ++asked;
  return comm == 9 ? of_another_world : 1000 - static_cast<std::int32_t>(peer);
}

TEST(messages_are_counted_as_a_model_counts_them) {
  in_own_process([] {
    choose_matrix("p2p", "none", 1u << 20);
    ask_for_world_ranks(reversed);
    std::mt19937_64 random(7);
    std::map<Pair, Traffic> model;
    Thread& thread = this_thread();
    for (int i = 0; i < 200'000; ++i) {
      const auto flow = static_cast<Flow>(random() % 4);
      const auto comm = static_cast<std::uint32_t>(random() % 10);
      const auto peer = static_cast<std::uint32_t>(random() % 300);
      const std::uint64_t bytes = random() % 3 == 0 ? 0 : std::uint64_t{1} << (random() % 63);
      count_message(thread, flow, comm, 0, static_cast<int>(peer), bytes);
      Traffic& traffic = model[{flow, bin_of(bytes), comm, peer}];
      ++traffic.messages;
      traffic.bytes += bytes;
    }
    const Registry registry;
    const Peers peers = counted_here(registry, now()).peers;
    CHECK_EQ(peers.size(), model.size());
    for (const auto& [at, sum] : peers) {
      const Pair pair{flow_of(at.first), bin_of_peer(at.first), comm_of_peer(at.first), peer_of(at.second)};
      CHECK_EQ((Traffic{sum.messages, sum.bytes}), model[pair]);
      const std::int32_t world =
          std::get<2>(pair) == 9 ? of_another_world : 1000 - static_cast<std::int32_t>(std::get<3>(pair));
      CHECK_EQ(sum.world, world);
      CHECK_EQ(shift_of(at.second), 0u);
    }
    CHECK_EQ(static_cast<std::size_t>(asked), model.size());  // once for each, when it is first met
    CHECK_EQ(notices().size(), 0u);
  });
}

TEST(beyond_the_most_pairs_peers_are_counted_in_blocks_and_no_message_is_lost) {
  in_own_process([] {
    constexpr std::uint32_t most = 1000;
    choose_matrix("p2p", "none", most);
    Thread& thread = this_thread();
    constexpr int peers = 300'000;
    for (int round = 0; round < 2; ++round) {
      for (int peer = 0; peer < peers; ++peer)
        count_message(thread, Flow::sent, 2, 0, peer, static_cast<std::uint64_t>(peer));
    }
    CHECK_EQ(all_traffic(), (Traffic{2ull * peers, 1ull * peers * (peers - 1)}));
    std::map<unsigned, std::uint64_t> cells;
    each_peer([&cells](const PeerCell& cell) {
      const unsigned shift = shift_of(cell.site);
      ++cells[shift];
      CHECK_EQ(peer_of(cell.site) & ((1u << shift) - 1), 0u);
      // All its messages are of peers in the block, and of the size bin: the sum shows a stray one.
      const std::uint64_t first = peer_of(cell.site), last = first + (std::uint64_t{1} << shift) - 1;
      CHECK(cell.bytes >= cell.messages * first && cell.bytes <= cell.messages * last);
    });
    CHECK_EQ(cells[0], std::uint64_t{most});
    CHECK(cells[6] > 0 && cells[6] <= most);
    CHECK(thread.peers.used <= 3 * most + 64);  // bounded, whatever comes
    CHECK_EQ(notices().size(), 1u);
    CHECK_EQ(notices()[0].text.find("more than 1000 pairs of a communicator and a peer: "), 0u);
  });
}

TEST(what_is_read_while_threads_count_never_goes_back_and_ends_complete) {
  in_own_process([] {
    choose_matrix("p2p", "none", 1u << 20);
    constexpr int threads = 3, messages = 200'000;
    std::atomic<int> done{0};
    std::vector<std::thread> counting;
    for (int t = 0; t < threads; ++t) {
      counting.emplace_back([&done, t] {
        Thread& thread = this_thread();
        for (int i = 0; i < messages; ++i) count_message(thread, Flow::sent, 2, 0, (i * 7 + t) % 5000, 8);
        ++done;
      });
    }
    std::uint64_t before = 0;
    while (done < threads) {
      const Traffic traffic = all_traffic();
      CHECK(traffic.messages >= before);
      before = traffic.messages;
    }
    for (std::thread& thread : counting) thread.join();
    CHECK_EQ(all_traffic(), (Traffic{1ull * threads * messages, 8ull * threads * messages}));
  });
}

TEST(nothing_is_counted_in_a_pause_and_a_reset_forgets) {
  in_own_process([] {
    choose_matrix("p2p", "none", 1u << 20);
    Thread& thread = this_thread();
    count_message(thread, Flow::sent, 2, 0, 1, 100);
    pause_counting();
    count_message(thread, Flow::sent, 2, 0, 1, 100);
    resume_counting();
    CHECK_EQ(all_traffic(), (Traffic{1, 100}));
    forget_counted();
    CHECK_EQ(all_traffic(), (Traffic{0, 0}));
    count_message(thread, Flow::received, 2, 0, 1, 7);
    CHECK_EQ(all_traffic(), (Traffic{1, 7}));
  });
}

TEST(regions_and_slices_are_kept_apart_where_they_are_asked_for) {
  for (const char* const by : {"none", "region", "slice", "both"}) {
    in_own_process([by] {
      choose_matrix("p2p", by, 1u << 20);
      Thread& thread = this_thread();
      for (std::uint32_t region = 0; region < 3; ++region) {
        thread.count_in(region);
        for (std::uint64_t slot = 0; slot < 4; ++slot) {
          thread.slices.width = first_slice_width << 5;
          thread.slices.slot = slot;
          count_message(thread, Flow::sent, 2, 0, 1, 8);
        }
      }
      const bool regions = std::string(by) == "region" || std::string(by) == "both";
      const bool slices = std::string(by) == "slice" || std::string(by) == "both";
      std::uint64_t cells = 0;
      each_peer([&](const PeerCell& cell) {
        ++cells;
        if (slices) CHECK_EQ(slice_of_peer(cell.key) >> slice_bits, 5u);
      });
      CHECK_EQ(cells, (regions ? 3u : 1u) * (slices ? 4u : 1u));
      CHECK_EQ(all_traffic(), (Traffic{12, 96}));
    });
  }
}

}  // namespace
}  // namespace commlens
