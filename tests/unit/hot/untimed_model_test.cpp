// SPDX-License-Identifier: Apache-2.0
// All places that the random numbers can choose in three blocks of calls, one after the other: the sum of the estimates
// over all of them is exactly the number of these times the true time.  Nothing here is random.
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/identity.h"
#include "core/hot/peers.h"
#include "core/hot/thread.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr unsigned parts = CachedCall::may_skip | CachedCall::out_message | CachedCall::messages;

enum class How {
  plain,
  in_slice_end,  // this thread has something else to do when the call ends
  in_message,    // its message is sampled
  elsewhere,     // a callback changes the region
  failing,       // MPI returns an error
  never_ends,    // an error handler leaves it by longjmp()
};
struct One {
  Ticks spent;
  How how = How::plain;
};

// Cells, and one cache entry, of a thread.
class Model {
 public:
  // doublings: of all blocks but the first call.
  explicit Model(unsigned doublings) : thread_(this_thread()) {
    static std::uint32_t site = 1000;
    ++site;
    home_ = thread_.region();
    const Key key = make_key(2, 7, 5, home_);
    cell_ = find_cell(thread_.table, key, site);
    elsewhere_ = find_cell(thread_.table, make_key(2, 7, 5, home_ + 1), site);
    failed_ = find_cell(thread_.table, make_key(2, 7, 0, home_), site);
    // So many calls that took so long that the size of the blocks stays the same.
    cell_->calls = before_calls_ = std::uint64_t{1} << (9 + doublings);
    cell_->time = before_time_ = Ticks{1} << 50;
    entry_.cell = cell_;
    entry_.region = home_;
    entry_.site = thread_.current.site = site;
    entry_.out = &peer_;
    peer_.channel = &channel_;
    timed_first = 1;
  }
  ~Model() { timed_first = usual_timed_first; }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // place: what the random numbers choose next, if it is needed in this call.  Returns whether it was.
  bool call(const One& one, std::uint64_t place, unsigned doublings) {
    channel_.skips = one.how == How::in_message ? 0 : 1000;
    const bool is_untimed = goes_untimed<parts>(thread_, entry_);
    if (one.how == How::never_ends) return false;
    const bool is_needed = !is_untimed && one.how != How::in_message && entry_.gap(parts).turn == 0;
    if (is_needed) choose(place, doublings);
    const bool has_succeeded = one.how != How::failing;
    if (one.how == How::elsewhere) thread_.count_in(home_ + 1);
    if (one.how == How::in_slice_end) thread_.wait_until(1);
    if (is_untimed) {
      if (has_succeeded && is_as_decided<parts>(thread_, entry_)) {
        count_untimed<parts>(thread_, entry_);
      } else {
        count_untimed_late(thread_, entry_, parts, has_succeeded);
      }
    } else {
      constexpr Ticks since = 1000;
      thread_.current.since = since;
      const Ticks end = since + one.spent;
      if (has_succeeded && thread_.region() == home_ && !thread_.is_due(end)) {
        count_timed<parts>(thread_, entry_, end);
      } else {
        const unsigned stays = one.how == How::elsewhere ? parts | CachedCall::stays : parts;
        count_late(thread_, entry_, stays, end, has_succeeded, 0, -1, 0);
      }
    }
    thread_.count_in(home_);
    thread_.wait_until(0);  // never
    return is_needed;
  }

  std::uint64_t calls(const Cell& cell) const { return cell.calls + untimed(cell).calls - before(cell).first; }
  Ticks time(const Cell& cell) const { return cell.time + untimed(cell).time - before(cell).second; }
  const Cell& here() const { return *cell_; }
  const Cell& elsewhere() const { return *elsewhere_; }
  const Cell& failed() const { return *failed_; }
  Ticks mpi() const { return thread_.mpi; }

 private:
  std::pair<std::uint64_t, Ticks> before(const Cell& cell) const {
    return &cell == cell_ ? std::make_pair(before_calls_, before_time_) : std::make_pair(std::uint64_t{0}, Ticks{0});
  }
  Cell untimed(const Cell& cell) const {
    const Cell* const found = known_cell(thread_.table, untimed_key(cell.key), cell.site);
    return found == nullptr ? Cell{} : *found;
  }
  // Sets the state of the generator so that its next number has these lower bits.
  void choose(std::uint64_t place, unsigned doublings) {
    const std::uint64_t mask = (std::uint64_t{1} << doublings) - 1;
    std::uint64_t state = 0;
    while ((mixed(state + 0x9e3779b97f4a7c15u) & mask) != place) ++state;
    thread_.call_cache->random = state;
  }

  Thread& thread_;
  std::uint32_t home_;
  Cell *cell_, *elsewhere_, *failed_;
  std::uint64_t before_calls_;
  Ticks before_time_;
  CachedCall entry_{};
  PeerCell peer_{};
  Channel channel_{};
};

// Makes these calls with all places that may be chosen in the first three blocks of 2^doublings calls.
void check_all(unsigned doublings, const std::vector<One>& calls) {
  const std::uint64_t size = std::uint64_t{1} << doublings, paths = size * size * size;
  struct Sum {
    std::uint64_t calls = 0;
    Ticks time = 0;
  };
  std::array<Sum, 3> truth, sums;  // here, elsewhere, failed
  for (const One& one : calls) {
    if (one.how == How::never_ends) continue;
    Sum& sum = truth[one.how == How::elsewhere ? 1 : one.how == How::failing ? 2 : 0];
    ++sum.calls;
    sum.time += one.spent;
  }
  for (std::uint64_t path = 0; path < paths; ++path) {
    Model model(doublings);
    const Ticks mpi = model.mpi();
    const std::uint64_t places[] = {path % size, path / size % size, path / size / size};
    std::size_t next = 0;
    for (const One& one : calls) {
      if (model.call(one, next < 3 ? places[next] : 0, doublings)) ++next;
    }
    CHECK(next <= 4);  // else a place would not be tried
    const Cell* const cells[] = {&model.here(), &model.elsewhere(), &model.failed()};
    Ticks all = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK_EQ(model.calls(*cells[i]), truth[i].calls);
      sums[i].time += model.time(*cells[i]);
      all += model.time(*cells[i]);
    }
    CHECK_EQ(model.mpi() - mpi, all);
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK_EQ(sums[i].time, paths * truth[i].time);
}

// The first call begins the blocks.  Of the last one, a part is left.
std::vector<One> calls_of(unsigned doublings, const std::function<One(std::uint64_t)>& call) {
  std::vector<One> calls;
  const std::uint64_t size = std::uint64_t{1} << doublings;
  for (std::uint64_t i = 0; i < 1 + 2 * size + size / 2; ++i) calls.push_back(call(i));
  return calls;
}

void check_all(const std::function<One(std::uint64_t)>& call) {
  for (const unsigned doublings : {1u, 2u, 3u}) check_all(doublings, calls_of(doublings, call));
}

}  // namespace

TEST(the_mean_of_all_estimates_is_exact_for_constant_costs) {
  check_all([](std::uint64_t) { return One{100}; });
}
TEST(the_mean_of_all_estimates_is_exact_for_two_kinds_of_calls) {
  check_all([](std::uint64_t i) { return One{i % 5 == 3 ? Ticks{1'000'000} : 20}; });
  check_all([](std::uint64_t i) { return One{i % 2 == 0 ? Ticks{5000} : 20}; });
}
TEST(the_mean_of_all_estimates_is_exact_for_growing_and_falling_costs) {
  check_all([](std::uint64_t i) { return One{10 + 7 * i * i}; });
  check_all([](std::uint64_t i) { return One{10'000 - 13 * i}; });
}
TEST(long_calls_are_those_in_which_a_slice_ends) {
  check_all([](std::uint64_t i) { return i % 4 == 1 ? One{100'000, How::in_slice_end} : One{30}; });
}
TEST(calls_whose_message_is_sampled_stand_for_themselves) {
  check_all([](std::uint64_t i) { return i % 3 == 1 ? One{9000 + i, How::in_message} : One{30 + i}; });
}
TEST(calls_that_end_in_another_region_have_an_unbiased_estimate_there) {
  check_all([](std::uint64_t i) { return i % 4 == 2 ? One{5000 + i, How::elsewhere} : One{30 + i}; });
}
TEST(calls_that_fail_have_an_unbiased_estimate_of_their_own) {
  check_all([](std::uint64_t i) { return i % 4 == 1 ? One{7000 + i, How::failing} : One{30 + i}; });
}
TEST(calls_that_never_end_leave_the_estimate_of_the_others_as_it_is) {
  check_all([](std::uint64_t i) { return i % 3 == 1 ? One{0, How::never_ends} : One{30 + 100 * i}; });
}

}  // namespace commlens
