// SPDX-License-Identifier: Apache-2.0
// Threads that begin and end regions at random: their counters are those of a model.
#include "tests/unit/hot/regions_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/clock.h"

namespace commlens {
namespace {

using check::is_slow;

template <class Map>
void same(const Map& found, const Map& expected, const char* what) {
  for (const auto& [key, value] : expected) {
    const auto at = found.find(key);
    if (at != found.end() && at->second == value) continue;
    std::ostringstream text;
    if constexpr (std::is_same_v<typename Map::key_type, Instance>) text << key << ": ";
    if constexpr (std::is_same_v<typename Map::mapped_type, Sum>) {
      text << "expected " << value << ", found ";
      at == found.end() ? text << "nothing" : text << at->second;
    }
    check::fail(__FILE__, __LINE__, std::string(what) + ": " + text.str());
  }
  CHECK_EQ(found.size(), expected.size());
}

// In slices of another width, or all as one.
Slices folded(const Slices& slices, std::uint64_t times) {
  Slices sums;
  for (const auto& [at, sum] : slices) {
    if (sum.first == 0 && sum.second == 0) continue;
    auto& [calls, time] = sums[{at.first, at.second / times}];
    calls += sum.first;
    time += sum.second;
  }
  return sums;
}

struct Life {
  unsigned seed = 0;
  int steps = 2000;
  std::string patterns;
  std::uint32_t executions = 4, iterations = 3;
  bool is_controlled = true;  // paused, resumed and forgotten now and then
  int begins = 30;            // in a hundred steps
  Ticks longest = 1000;
};

// What the application says at random, to the core and to the model.
class RandomRun {
 public:
  explicit RandomRun(const Life& life)
      : life_(life), random_(life.seed), model_(patterns_of(life), life.executions, life.iterations) {}

  void run() {
    const int begin_of_slices = chance(life_.steps / 2);
    for (int i = 0; i < life_.steps; ++i) {
      if (i == begin_of_slices) {
        begin_slices(test_clock::now());
        model_.begin_slices(test_clock::now());
      }
      go_on(random_() % (random_() % life_.longest + 1));
      step();
      if (thread_.regions != nullptr) CHECK_EQ(thread_.regions->depth, model_.depth());
    }
    if (thread_.regions != nullptr) compare();
  }

 private:
  static std::vector<std::string> patterns_of(const Life& life) {
    std::vector<std::string> patterns;
    for (std::size_t at = 0; at < life.patterns.size();) {
      const std::size_t end = std::min(life.patterns.find(',', at), life.patterns.size());
      patterns.push_back(life.patterns.substr(at, end - at));
      at = end + 1;
    }
    return patterns;
  }

  int chance(int of) { return static_cast<int>(random_() % static_cast<unsigned>(of)); }

  void go_on(Ticks by) {
    test_clock::go_on(by);
    model_.go_on(by);
  }

  void step() {
    const std::string& name = names_[random_() % names_.size()];
    const int what = chance(100);
    if (what < life_.begins) {
      begin(name);
    } else if (what < 55) {
      const bool is_any = chance(3) == 0;
      end_region(thread_, is_any ? called(name) : innermost, 1);
      model_.end(is_any ? name : "");
    } else if (what < 70) {
      begin_iteration(thread_, 1);
      model_.iteration();
    } else if (what < 85) {
      call();
    } else if (what < 96) {
      value();
    } else if (life_.is_controlled && what < 98) {
      pause_counting();
      model_.pause();
    } else if (life_.is_controlled && what < 99) {
      resume_counting();
      model_.resume();
    } else if (life_.is_controlled && chance(10) == 0) {
      forget_counted();
      model_.forget();
    }
  }

  void begin(const std::string& name) {
    const int kind = chance(4);
    begin_region(thread_, called(name), 1,
                 kind == 0   ? OpeningKind::loop_as_sum
                 : kind == 1 ? OpeningKind::loop_one_by_one
                             : OpeningKind::region);
    model_.begin(name, kind < 2, kind == 1);
  }

  void call() {
    const Ticks spent = random_() % (life_.longest * 2);
    thread_.current.since = now();
    const std::uint32_t region = thread_.region();
    go_on(spent);
    record(thread_, make_key(1, 2, 3, region), random_() % 3, spent, 8, 8);
    model_.call(spent);
  }

  void value() {
    const double strange[] = {std::nan(""), std::numeric_limits<double>::infinity(), -1e300, 0.0, -0.5, 5e-324};
    const double value = chance(4) == 0 ? strange[random_() % std::size(strange)] : static_cast<double>(chance(1000));
    const std::uint64_t metric = metrics_[random_() % 2];
    record_value(thread_, metric, value);
    model_.value(metric, value);
  }

  void compare() {
    const Recorded found = recorded_by(thread_), expected = model_.recorded();
    same(found.times, expected.times, "times");
    same(found.iterations, expected.iterations, "iterations");
    same(found.bins, expected.bins, "bins");
    same(found.values, expected.values, "values");
    same(found.calls, expected.calls, "calls");
    finish_slices(thread_, now());
    Ticks width = 1;
    const Slices slices = slices_by(thread_, width);
    for (const auto& [at, sum] : slices) CHECK(at.second < max_slices && sum.second < test_clock::now());
    // Where counting was paused nothing tells in which slices the rest was.
    const std::uint64_t times = life_.is_controlled ? ~std::uint64_t{0} : width / first_slice_width;
    same(folded(slices, life_.is_controlled ? times : 1), folded(expected.slices, times), "slices");
  }

  const Life life_;
  std::mt19937_64 random_;
  Model model_;
  Thread& thread_ = this_thread();
  const std::vector<std::string> names_ = {"a",        "ab",         "solve",
                                           "exchange", "time steps", "a name of more than one word"};
  const std::uint64_t metrics_[2] = {metric_of("residual", ""), metric_of("memory", "bytes")};
};

void live(const Life& life) {
  choose_regions(life.patterns, life.executions, life.iterations);
  RandomRun(life).run();
}

}  // namespace

TEST(whatever_a_thread_says_its_counters_are_those_of_a_model) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Life life;
    life.seed = seed;
    life.longest = Ticks{1000} << (seed % 5 * 4);
    life.begins = seed % 7 == 0 ? 45 : 30;
    in_process([&] { live(life); });
  }
}

TEST(slices_of_regions_are_those_of_a_model_however_long_the_run) {
  for (unsigned seed = 0; seed < (is_slow ? 2 : 7); ++seed) {
    Life life;
    life.seed = seed;
    life.is_controlled = false;
    life.longest = Ticks{1000} << (seed % 7 * 4);
    in_process([&] { live(life); });
  }
}

TEST(regions_that_are_not_asked_for_count_as_in_a_model) {
  unsigned seed = 0;
  for (const char* patterns : {"solve", "!solve", "a*,!ab", "!a*,ab", "*/solve", "solve/*", "!*/a,*steps", "!*",
                               "nothing like it", "*,!a*,ab", "!solve,solve/a", "a,!solve/*,*exch*"}) {
    for (int i = 0; i < 8; ++i) {
      Life life;
      life.seed = ++seed;
      life.patterns = patterns;
      life.is_controlled = i % 2 == 0;
      in_process([&] { live(life); });
    }
  }
}

TEST(the_limits_of_executions_and_iterations_are_those_that_were_chosen) {
  for (const auto& [executions, iterations] : {std::pair{1u, 0u}, {1u, 1u}, {2u, 1u}, {1000u, 1000u}}) {
    Life life;
    life.executions = executions;
    life.iterations = iterations;
    in_process([&] { live(life); });
  }
}

}  // namespace commlens
