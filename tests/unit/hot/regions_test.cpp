// SPDX-License-Identifier: Apache-2.0
#include "core/hot/regions.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/state/notices.h"
#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/clock.h"
#include "tests/unit/process.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using check::is_slow;

constexpr Ticks start_of_time = 1'000'000'000'000;

// In a process of its own, in which time passes as the test says.
void in_process(const std::function<void()>& body) {
  in_own_process([&body] {
    clock_is_tsc = false;
    test_clock::set(start_of_time);
    body();
  });
}

// Of a text that stays where it is.
Called called(const std::string& name) {
  return {identity_of_name(name.data(), name.size()), name.data(), name.size()};
}
Called called(const char* name) { return {identity_of_name(name, std::strlen(name)), name, std::strlen(name)}; }
Called called(std::string&&) = delete;
constexpr Called innermost{0, "", 0};

using Instance = std::tuple<std::string, std::uint32_t, std::int32_t>;  // path, execution, iteration

std::ostream& operator<<(std::ostream& out, const Instance& place) {
  return out << std::get<0>(place) << " execution " << std::get<1>(place) << " iteration " << std::get<2>(place);
}

struct Sum {
  std::uint64_t calls = 0, open = 0;
  Ticks time = 0, min = 0, max = 0, nested = 0, mpi = 0;
  bool operator==(const Sum& o) const {
    return std::tie(calls, open, time, min, max, nested, mpi) ==
           std::tie(o.calls, o.open, o.time, o.min, o.max, o.nested, o.mpi);
  }
};

std::ostream& operator<<(std::ostream& out, const Sum& s) {
  return out << s.calls << " calls " << s.open << " open " << s.time << " time " << s.min << " to " << s.max
             << " nested " << s.nested << " mpi " << s.mpi;
}

struct Values {
  std::uint64_t count = 0, not_finite = 0;
  double sum = 0, min = 0, max = 0, last = 0;
  bool operator==(const Values& o) const {
    return std::tie(count, not_finite, sum, min, max, last) ==
           std::tie(o.count, o.not_finite, o.sum, o.min, o.max, o.last);
  }
};

// All there is to know of a thread.
struct Recorded {
  std::map<Instance, Sum> times, iterations;
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, std::uint64_t> bins;  // path, execution, bin
  std::map<std::pair<Instance, std::uint64_t>, Values> values;
  std::map<std::string, std::pair<std::uint64_t, Ticks>> calls;                             // of MPI, by path
  std::map<std::pair<std::string, std::uint64_t>, std::pair<std::uint64_t, Ticks>> slices;  // by path and slot
};

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

// ---- the model: paths, and a clock of its own that stands while counting is paused ----

struct Step {
  std::string name, path, shown;  // a loop stands in <> in its path
  bool is_loop = false, keeps_apart = false, counts = true;
  Ticks start = 0, nested = 0, mpi = 0;
  std::uint32_t execution = 0;
  std::int32_t around = -1, iteration = -1;  // that it is in; that those within it are in
  bool lives = true;                         // it was there while counting was not paused
  std::uint32_t iterations = 0;
  Ticks iteration_start = 0, iteration_nested = 0, iteration_mpi = 0;
  bool iteration_lives = true;
  Instance place() const { return {path, execution, around}; }
};

class Model {
 public:
  Model(std::vector<std::string> patterns, std::uint32_t executions, std::uint32_t iterations)
      : patterns_(std::move(patterns)), most_executions_(executions), most_iterations_(iterations) {}

  void begin_slices(Ticks at) { origin_ = at; }

  void go_on(Ticks by) {
    while (by > 0) {
      Ticks part = by;
      if (origin_ != 0) part = std::min(part, first_slice_width - (now_ - origin_) % first_slice_width);
      if (!paused_) {
        counted_ += part;
        const auto inner = std::find_if(steps_.rbegin(), steps_.rend(), [](const Step& s) { return s.counts; });
        if (inner != steps_.rend()) recorded_.slices[{inner->path, slot()}].second += part;
      }
      now_ += part;
      by -= part;
    }
  }

  void begin(const std::string& name, bool is_loop, bool keeps_apart) {
    if (beyond_ != 0 || steps_.size() == 128) {
      ++beyond_;
      return;
    }
    const bool is_outermost = steps_.empty();
    Step step;
    step.name = name;
    step.path = (is_outermost ? "" : steps_.back().path + "/") + (is_loop ? "<" + name + ">" : name);
    step.shown = (is_outermost ? "" : steps_.back().shown + "/") + name;
    step.is_loop = is_loop;
    step.keeps_apart = keeps_apart;
    step.counts = counts(step);
    step.start = counted_;
    step.execution = is_outermost ? std::min(executions_[step.path]++, most_executions_ - 1) : steps_.back().execution;
    step.around = step.iteration = is_outermost ? -1 : steps_.back().iteration;
    step.lives = !paused_;
    steps_.push_back(step);
  }

  void end(const std::string& name) {
    if (beyond_ != 0) {
      --beyond_;
      return;
    }
    std::size_t at = steps_.size();
    while (at > 0 && !name.empty() && steps_[at - 1].name != name) --at;
    while (at > 0 && steps_.size() >= at) close();
  }

  void iteration() {
    if (beyond_ != 0) return;
    std::size_t at = steps_.size();
    while (at > 0 && !steps_[at - 1].is_loop) --at;
    if (at == 0) return;
    while (steps_.size() > at) close();
    Step& loop = steps_.back();
    if (loop.iterations != 0) close_iteration(loop);
    const auto number = static_cast<std::int32_t>(loop.iterations);
    if (loop.keeps_apart) loop.iteration = loop.iterations < most_iterations_ ? number : -1;
    ++loop.iterations;
    loop.iteration_start = counted_;
    loop.iteration_nested = loop.iteration_mpi = 0;
    loop.iteration_lives = !paused_;
  }

  void value(std::uint64_t metric, double v) {
    if (paused_ || !counts_here()) return;
    const Instance here = steps_.empty()
                              ? Instance{"", 0, -1}
                              : Instance{steps_.back().path, steps_.back().execution, steps_.back().iteration};
    Values& to = recorded_.values[{here, metric}];
    if (!std::isfinite(v)) {
      ++to.not_finite;
      return;
    }
    to.min = to.count == 0 ? v : std::min(to.min, v);
    to.max = to.count == 0 ? v : std::max(to.max, v);
    to.sum += v;
    to.last = v;
    ++to.count;
  }

  // Ends now, after go_on(spent).
  void call(Ticks spent) {
    if (paused_ || !counts_here()) return;
    auto& [calls, time] = recorded_.calls[steps_.empty() ? "" : steps_.back().path];
    ++calls;
    time += spent;
    for (Step& step : steps_) {
      step.mpi += spent;
      step.iteration_mpi += spent;
    }
  }

  void pause() { paused_ = true; }
  void resume() {
    paused_ = false;
    for (Step& step : steps_) step.lives = step.iteration_lives = true;
  }

  void forget() {
    recorded_ = {};
    executions_.clear();
    if (!steps_.empty()) executions_[steps_.front().path] = 1;
    for (Step& step : steps_) {
      step.execution = 0;
      step.start = step.iteration_start = counted_;
      step.nested = step.iteration_nested = step.mpi = step.iteration_mpi = 0;
    }
  }

  std::size_t depth() const { return steps_.size(); }
  std::string path() const { return steps_.empty() ? "" : steps_.back().path; }

  Recorded recorded() const {
    Recorded all = recorded_;
    Ticks within = 0;
    for (auto at = steps_.rbegin(); at != steps_.rend(); ++at) {
      if (!at->counts) {
        within += at->nested;
      } else if (at->lives) {
        Sum& sum = all.times[at->place()];
        ++sum.open;
        sum.time += counted_ - at->start;
        sum.nested += at->nested + within;
        sum.mpi += at->mpi;
        within = counted_ - at->start;
      }
    }
    return all;
  }

 private:
  std::uint64_t slot() const { return origin_ == 0 ? 0 : (now_ - origin_) / first_slice_width; }
  bool counts_here() const { return steps_.empty() ? counts_outside() : steps_.back().counts; }
  bool counts_outside() const {
    return std::all_of(patterns_.begin(), patterns_.end(), [](const std::string& p) { return p[0] == '!'; });
  }

  // By the last pattern that matches it or one around it.
  bool counts(const Step& step) const {
    std::vector<const Step*> line{&step};
    for (const Step& s : steps_) line.push_back(&s);
    for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
      const bool leaves_out = (*pattern)[0] == '!';
      const std::string text = pattern->substr(leaves_out ? 1 : 0);
      for (const Step* s : line) {
        const std::string& subject = text.find('/') == std::string::npos ? s->name : s->shown;
        if (fnmatch(text.c_str(), subject.c_str(), 0) == 0) return !leaves_out;
      }
    }
    return counts_outside();
  }

  static void add(Sum& sum, Ticks spent, Ticks nested, Ticks mpi) {
    sum.min = sum.calls == 0 ? spent : std::min(sum.min, spent);
    sum.max = std::max(sum.max, spent);
    ++sum.calls;
    sum.time += spent;
    sum.nested += nested;
    sum.mpi += mpi;
  }

  void close_iteration(Step& loop) {
    if (!loop.counts || !loop.iteration_lives) return;
    const Ticks spent = counted_ - loop.iteration_start;
    add(recorded_.iterations[{loop.path, loop.execution, loop.keeps_apart ? loop.iteration : -1}], spent,
        loop.iteration_nested, loop.iteration_mpi);
    std::uint32_t bin = 0;
    while (bin < 63 && spent >> bin != 0) ++bin;
    ++recorded_.bins[{loop.path, loop.execution, bin}];
  }

  void close() {
    Step step = steps_.back();
    if (step.iterations != 0) close_iteration(step);
    steps_.pop_back();
    Ticks passed = step.nested;  // what it is for the one around
    if (step.counts && step.lives) {
      passed = counted_ - step.start;
      add(recorded_.times[step.place()], passed, step.nested, step.mpi);
      ++recorded_.slices[{step.path, slot()}].first;
    }
    if (steps_.empty()) return;
    steps_.back().nested += passed;
    steps_.back().iteration_nested += passed;
  }

  std::vector<std::string> patterns_;
  std::uint32_t most_executions_, most_iterations_;
  Ticks now_ = start_of_time, counted_ = 0, origin_ = 0;
  bool paused_ = false;
  std::vector<Step> steps_;
  std::size_t beyond_ = 0;
  std::map<std::string, std::uint32_t> executions_;
  Recorded recorded_;
};

// ---- what the thread has ----

std::vector<std::string> paths_of(const CountedRegions& counted) {
  std::vector<std::string> paths{""};
  for (std::size_t i = 1; i < counted.names.size(); ++i) {
    const RegionFacts& facts = counted.names[i];
    const std::string name = facts.kind == RegionKind::loop ? "<" + facts.name + ">" : facts.name;
    paths.push_back((facts.parent == 0 ? "" : paths[facts.parent] + "/") + name);
  }
  return paths;
}

Recorded recorded_by(const Thread& thread) {
  CountedRegions counted = region_names();
  const std::vector<std::string> paths = paths_of(counted);
  const Regions& regions = *thread.regions;
  each_cell(regions.cells, [&](const RegionCell& cell) { counted.add(cell); });
  each_cell(regions.loops, [&](const LoopCell& cell) { counted.add(cell); });
  each_cell(regions.metrics, [&](const MetricCell& cell) { counted.add(cell); });
  counted.add_open(regions.frames, regions.depth, thread.mpi, counted_time(now()), pauses.changes.load());
  const auto place = [&](RegionKey key) {
    return Instance{paths[region_of(key)], execution_of(key), iteration_of(key)};
  };
  Recorded recorded;
  for (const auto& [key, s] : counted.times) {
    Sum& sum = (counts_iterations(key) ? recorded.iterations : recorded.times)[place(key)];
    sum = {s.calls, s.open, s.time, s.time_min, s.time_max, s.nested, s.mpi};
  }
  for (const auto& [key, bins] : counted.loops) {
    for (std::uint32_t i = 0; i < bins.size(); ++i) {
      if (bins[i] != 0) recorded.bins[{paths[region_of(key)], execution_of(key), i}] = bins[i];
    }
  }
  for (const auto& [key, v] : counted.values)
    recorded.values[{place(key.first), key.second}] = {v.count, v.not_finite, v.sum, v.min, v.max, v.last};
  each_cell(thread.table, [&](const Cell& cell) {
    if (region_of_key(cell.key) == uncounted_region || cell.calls == 0) return;
    auto& [calls, time] = recorded.calls[paths[region_of_key(cell.key)]];
    calls += cell.calls;
    time += cell.time;
  });
  return recorded;
}

using Slices = decltype(Recorded::slices);

Slices slices_by(const Thread& thread, Ticks& width) {
  const std::vector<std::string> paths = paths_of(region_names());
  const Sliced sliced = added_up({slices_of(thread)});
  width = sliced.width;
  Slices slices;
  for (const SliceEntry& entry : sliced.entries) {
    if (!is_of_region(entry.key) || (entry.calls | entry.time) == 0) continue;
    auto& [calls, time] = slices[{paths[region_of_key(entry.key)], entry.slot}];
    calls += entry.calls;
    time += entry.time;
  }
  return slices;
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
void live(const Life& life) {
  choose_regions(life.patterns, life.executions, life.iterations);
  std::vector<std::string> patterns;
  for (std::size_t at = 0; at < life.patterns.size();) {
    const std::size_t end = std::min(life.patterns.find(',', at), life.patterns.size());
    patterns.push_back(life.patterns.substr(at, end - at));
    at = end + 1;
  }
  Model model(patterns, life.executions, life.iterations);
  Thread& thread = this_thread();
  std::mt19937_64 random(life.seed);
  const auto chance = [&random](int of) { return static_cast<int>(random() % static_cast<unsigned>(of)); };
  const std::vector<std::string> names = {"a", "ab", "solve", "exchange", "time steps", "a name of more than one word"};
  std::uint64_t metrics[2] = {metric_of("residual", ""), metric_of("memory", "bytes")};
  const auto go_on = [&](Ticks by) {
    test_clock::go_on(by);
    model.go_on(by);
  };
  const int begin_of_slices = chance(life.steps / 2);
  for (int i = 0; i < life.steps; ++i) {
    if (i == begin_of_slices) {
      begin_slices(test_clock::now());
      model.begin_slices(test_clock::now());
    }
    go_on(random() % (random() % life.longest + 1));
    const std::string& name = names[random() % names.size()];
    const int what = chance(100);
    if (what < life.begins) {
      const int kind = chance(4);
      begin_region(thread, called(name), 1,
                   kind == 0   ? Opened::loop_as_sum
                   : kind == 1 ? Opened::loop_one_by_one
                               : Opened::region);
      model.begin(name, kind < 2, kind == 1);
    } else if (what < 55) {
      const bool is_any = chance(3) == 0;
      end_region(thread, is_any ? called(name) : innermost, 1);
      model.end(is_any ? name : "");
    } else if (what < 70) {
      begin_iteration(thread, 1);
      model.iteration();
    } else if (what < 85) {
      const Ticks spent = random() % (life.longest * 2);
      thread.current.since = now();
      const std::uint32_t region = thread.region();
      go_on(spent);
      record(thread, make_key(1, 2, 3, region), random() % 3, spent, 8, 8);
      model.call(spent);
    } else if (what < 96) {
      const double strange[] = {std::nan(""), std::numeric_limits<double>::infinity(), -1e300, 0.0, -0.5, 5e-324};
      const double value = chance(4) == 0 ? strange[random() % std::size(strange)] : static_cast<double>(chance(1000));
      const std::uint64_t metric = metrics[random() % 2];
      record_value(thread, metric, value);
      model.value(metric, value);
    } else if (life.is_controlled && what < 98) {
      pause_counting();
      model.pause();
    } else if (life.is_controlled && what < 99) {
      resume_counting();
      model.resume();
    } else if (life.is_controlled && chance(10) == 0) {
      forget_counted();
      model.forget();
    }
    if (thread.regions != nullptr) CHECK_EQ(thread.regions->depth, model.depth());
  }
  if (thread.regions == nullptr) return;
  const Recorded found = recorded_by(thread), expected = model.recorded();
  same(found.times, expected.times, "times");
  same(found.iterations, expected.iterations, "iterations");
  same(found.bins, expected.bins, "bins");
  same(found.values, expected.values, "values");
  same(found.calls, expected.calls, "calls");
  finish_slices(thread, now());
  Ticks width = 1;
  const Slices slices = slices_by(thread, width);
  for (const auto& [at, sum] : slices) CHECK(at.second < max_slices && sum.second < test_clock::now());
  // Where counting was paused nothing tells in which slices the rest was.
  const std::uint64_t times = life.is_controlled ? ~std::uint64_t{0} : width / first_slice_width;
  same(folded(slices, life.is_controlled ? times : 1), folded(expected.slices, times), "slices");
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
  for (unsigned seed = 0; seed < (is_slow ? 7 : 21); ++seed) {
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

TEST(regions_deeper_than_there_are_frames_count_as_part_of_the_last) {
  in_process([] {
    Thread& thread = this_thread();
    const Called name = called("down");
    constexpr int depth = 300;
    for (int i = 0; i < depth; ++i, test_clock::go_on(1)) begin_region(thread, name, 1, Opened::region);
    CHECK_EQ(thread.regions->depth, Regions::most_frames);
    begin_iteration(thread, 1);  // of none of them
    for (int i = 0; i < depth; ++i, test_clock::go_on(1)) end_region(thread, name, 1);
    CHECK_EQ(thread.regions->depth, 0u);
    CHECK_EQ(thread.regions->beyond, 0u);
    const Recorded recorded = recorded_by(thread);
    CHECK_EQ(recorded.times.size(), std::size_t{Regions::most_frames});
    std::string path = "down";
    for (std::uint32_t i = 0; i < Regions::most_frames; ++i, path += "/down") {
      const Sum& sum = recorded.times.at({path, 0, -1});
      // Of the 600 ticks i before it and i behind it are not its own; a tick is behind the last end.
      CHECK_EQ(sum.calls, 1u);
      CHECK_EQ(sum.time, Ticks{2 * depth - 1} - 2 * i);
    }
    CHECK_EQ(notices().size(), 1u);
    CHECK_EQ(notices()[0].text.find("regions are nested more than 128 deep, such as \"down\" at "), 0u);
  });
}

TEST(regions_beyond_those_told_apart_are_others_and_no_time_is_lost_or_counted_twice) {
  in_process([] {
    Thread& thread = this_thread();
    constexpr std::uint32_t names = 20'000, apart = most_regions - 2;  // less the program and "main"
    const Called main = called("main"), within = called("within");
    begin_slices(test_clock::now());
    begin_region(thread, main, 1, Opened::region);
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < names; ++i) {
        const std::string name = "region " + std::to_string(i);
        begin_region(thread, called(name), 1, Opened::region);
        test_clock::go_on(10);
        if (i >= apart) {  // others within the others
          begin_region(thread, within, 1, Opened::region);
          test_clock::go_on(7);
          end_region(thread, within, 1);
        }
        end_region(thread, called(name), 1);
      }
    }
    pause_counting();
    begin_region(thread, called("one more"), 1, Opened::region);
    begin_region(thread, within, 1, Opened::region);
    end_region(thread, within, 1);
    end_region(thread, called("one more"), 1);
    resume_counting();
    end_region(thread, main, 1);
    const Recorded recorded = recorded_by(thread);
    CHECK_EQ(recorded.times.size(), std::size_t{apart} + 2);
    const std::uint64_t others = 2 * (names - apart);
    const Sum& sum = recorded.times.at({"...others", 0, -1});
    CHECK_EQ(sum, (Sum{2 * others, 0, others * 17, 7, 17, 0, 0}));
    CHECK_EQ(recorded.times.at({"main/region 0", 0, -1}), (Sum{2, 0, 20, 10, 10, 0, 0}));
    const Ticks all = 2 * names * 10 + others * 7;
    CHECK_EQ(recorded.times.at({"main", 0, -1}), (Sum{1, 0, all, all, all, all, 0}));
    const CountedRegions counted = region_names();
    CHECK_EQ(counted.names.size(), std::size_t{most_regions} + 1);
    CHECK(counted.names.back().kind == RegionKind::others);
    CHECK_EQ(notices().size(), 1u);
    finish_slices(thread, now());
    Ticks width = 1, sliced = 0;
    for (const auto& [at, part] : slices_by(thread, width)) sliced += part.second;
    CHECK_EQ(sliced, all);
  });
}

TEST(a_thread_that_ends_closes_its_regions_and_a_later_one_begins_outside_all) {
  in_process([] {
    const Thread* first = nullptr;
    std::thread([&first] {
      first = &this_thread();
      begin_region(this_thread(), called("outer"), 1, Opened::region);
      begin_region(this_thread(), called("steps"), 1, Opened::loop_as_sum);
      begin_iteration(this_thread(), 1);
      test_clock::go_on(5);
    }).join();
    for (int i = 0; i < 50; ++i) {
      std::thread([first] {
        Thread& thread = this_thread();
        CHECK_EQ(&thread, first);
        CHECK_EQ(thread.regions->depth, 0u);
        CHECK_EQ(thread.region(), 0u);
        begin_region(thread, called("outer"), 1, Opened::region);
        test_clock::go_on(2);
      }).join();
    }
    const Recorded recorded = recorded_by(*first);
    Sum outer;
    for (const auto& [place, sum] : recorded.times) {
      if (std::get<0>(place) != "outer") continue;
      outer.calls += sum.calls;
      outer.time += sum.time;
    }
    CHECK_EQ(outer, (Sum{51, 0, 105}));
    CHECK_EQ(recorded.iterations.at({"outer/<steps>", 0, -1}), (Sum{1, 0, 5, 5, 5, 0, 0}));
  });
}

TEST(names_that_differ_in_one_byte_anywhere_are_different) {
  std::vector<Identity> all;
  for (const std::size_t bytes : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 64u, 255u}) {
    std::string name(bytes, 'x');
    all.push_back(identity_of_name(name.data(), bytes));
    for (std::size_t at = 0; at < bytes; ++at) {
      for (int c = 1; c < 256; ++c) {
        if (c == 'x') continue;
        name[at] = static_cast<char>(c);
        all.push_back(identity_of_name(name.data(), bytes));
      }
      name[at] = 'x';
    }
  }
  const std::size_t names = all.size();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  CHECK_EQ(all.size(), names);
}

TEST(millions_of_random_names_have_as_many_identities_and_so_have_their_loops) {
  constexpr std::uint32_t names = is_slow ? 1'000'000 : 10'000'000;
  const auto name_at = [](std::uint32_t i) {
    std::uint64_t word = mixed(i + 1);
    std::string name(word % 14 + 1, ' ');
    for (char& c : name) {
      word = mixed(word);
      c = "abcdefghijklmnopqrstuvwxyz0123456789_.:/ ABCDEFGHIJKLMNOPQRSTUVWXYZ"[word % 67];
    }
    return name;
  };
  std::vector<std::pair<Identity, std::uint32_t>> all;
  all.reserve(2 * names);
  for (std::uint32_t i = 0; i < names; ++i) {
    const std::string name = name_at(i);
    const Identity identity = identity_of_name(name.data(), name.size());
    all.emplace_back(identity, i);
    if (i % 10 == 0) all.emplace_back(identity ^ mark_of_loop, i + names);
  }
  std::sort(all.begin(), all.end());
  std::uint64_t different = 1;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].first != all[i - 1].first) {
      ++different;
      continue;
    }
    const std::uint32_t a = all[i].second, b = all[i - 1].second;
    CHECK((a < names) == (b < names) && name_at(a % names) == name_at(b % names));
  }
  CHECK(different > names / 2);  // short ones come again
}

TEST(bytes_beside_a_name_are_not_looked_at) {
  for (std::size_t bytes = 1; bytes < 40; ++bytes) {
    const std::string name(bytes, 'n');
    const std::string beside = "left" + name + "right", other = "LEFT" + name + "RIGHT";
    CHECK_EQ(identity_of_name(beside.data() + 4, bytes), identity_of_name(other.data() + 4, bytes));
    const std::vector<char> exact(name.begin(), name.end());  // asan sees what is read behind it
    CHECK_EQ(identity_of_name(exact.data(), bytes), identity_of_name(name.data(), bytes));
  }
}

TEST(without_memory_regions_begin_and_end_and_count_again_when_there_is_some) {
  for (int allowed = 0; allowed < 12; ++allowed) {
    in_process([allowed] {
      Thread& thread = this_thread();
      const auto say_all = [&thread](const std::string& prefix) {
        for (int i = 0; i < 40; ++i) {
          const std::string name = prefix + std::to_string(i);
          begin_region(thread, called(name), 1, Opened::loop_one_by_one);
          for (int k = 0; k < 5; ++k) {
            begin_iteration(thread, 1);
            begin_region(thread, called("inner"), 1, Opened::region);
            test_clock::go_on(3);
            record_value(thread, 1, 2.0);
            end_region(thread, called("inner"), 1);
          }
          end_region(thread, called(name), 1);
        }
      };
      {
        const shortage::NoMemory little(allowed);
        say_all("a");
      }
      if (thread.regions != nullptr) {
        CHECK_EQ(thread.regions->depth, 0u);
        CHECK_EQ(thread.regions->beyond, 0u);
      }
      say_all("b");
      CHECK_EQ(thread.regions->depth, 0u);
      const Recorded recorded = recorded_by(thread);
      std::uint64_t inner = 0, outer = 0;
      for (const auto& [place, sum] : recorded.times) {
        if (std::get<0>(place)[1] != 'b') continue;
        const bool is_inner = std::get<0>(place).find('/') != std::string::npos;
        (is_inner ? inner : outer) += sum.calls;
        CHECK_EQ(sum.time, is_inner ? 3 * sum.calls : 15 * sum.calls);
        if (!is_inner) CHECK_EQ(sum.nested, sum.time);
      }
      CHECK_EQ(outer, 40u);
      CHECK_EQ(inner, 200u);
    });
  }
}

// Three threads go in and out of regions, a fourth one pauses and resumes as fast as it can.
TEST(a_pattern_with_many_stars_is_looked_for_in_a_long_name_at_once) {
  in_process([] {
    alarm(20);  // trying all that its stars may stand for would take years
    choose_regions("!*a*a*a*a*a*a*a*a*b,!*c*/*d*", 4, 4);
    Thread& thread = this_thread();
    const std::string name(255, 'a'), other = name.substr(1) + "b", last = "dd";
    for (const std::string* const one : {&name, &other}) {
      begin_region(thread, called(*one), 1, Opened::region);
      CHECK_EQ(thread.region() == uncounted_region, one == &other);
      end_region(thread, innermost, 1);
    }
    begin_region(thread, called("bcb"), 1, Opened::region);
    begin_region(thread, called("add"), 1, Opened::region);
    CHECK_EQ(thread.region(), uncounted_region);
    end_regions(thread);
    begin_region(thread, called(last), 1, Opened::region);
    CHECK(thread.region() != uncounted_region);
  });
}

TEST(of_a_call_under_way_only_the_time_that_counts_is_counted) {
  in_process([] {
    constexpr Key key = make_key(1, 1, 1, 0);
    Thread& thread = this_thread();
    choose_regions("", 4, 4);
    begin_slices(test_clock::now());
    const auto call = [&](auto meanwhile) {
      const Ticks start = test_clock::now();
      char frame[2 * sizeof(void*)] = {};
      thread.enter(frame);
      thread.current.since = start;
      test_clock::go_on(10);
      meanwhile();
      test_clock::go_on(5);
      thread.outermost = nullptr;
      const Cell* const cell = record(thread, key, 0, test_clock::now() - start, 0, 0);
      const Ticks time = cell->time;
      thread.mpi = const_cast<Cell*>(cell)->time = 0;
      return time;
    };
    const Called name = called("region");
    begin_region(thread, name, 1, Opened::region);
    CHECK_EQ(call([] {}), 15u);
    CHECK_EQ(call([] {
               pause_counting();
               test_clock::go_on(1000);
               resume_counting();
             }),
             15u);
    CHECK_EQ(call([&] {  // what a callback does in between
               for (int i = 0; i < 3; ++i) {
                 pause_counting();
                 test_clock::go_on(1000);
                 resume_counting();
                 begin_region(thread, name, 1, Opened::region);
                 test_clock::go_on(1);
                 end_region(thread, name, 1);
               }
             }),
             18u);
    CHECK_EQ(call([] { forget_counted(); }), 5u);
    CHECK_EQ(call([] {}), 15u);
    pause_counting();  // it begins in a pause
    CHECK_EQ(call([] { resume_counting(); }), 5u);
    CHECK_EQ(call([] {}), 15u);
  });
}

TEST(nobody_changes_what_is_counted_while_regions_are_closed) {
  in_process([] {
    test_clock::set(0);  // the real one
    choose_regions("", 4, 4);
    std::atomic<int> begun{0};
    std::atomic<bool> over{false};
    std::thread other([&] {
      Thread& thread = this_thread();
      const std::uint64_t metric = metric_of("values", "");
      for (int i = 0; !over; begun = ++i) {
        const std::string name = "region " + std::to_string(i % 5000);
        begin_region(thread, called("outer"), 1, Opened::region);
        begin_region(thread, called(name), 1, Opened::loop_as_sum);
        begin_iteration(thread, 1);
        record_value(thread, metric, 1);
        end_region(thread, innermost, 1);
        end_region(thread, innermost, 1);
      }
    });
    const Thread* thread = nullptr;
    while (begun < 100 || (thread = first_thread()) == nullptr) std::this_thread::yield();
    const auto wait_for_more = [&begun](int more) {
      const int then = begun;
      while (begun < then + more) std::this_thread::yield();
    };
    std::uint64_t before = 0;
    for (int i = 0; i < 50; ++i) {
      close_regions();
      const auto counted = [&] {
        std::uint64_t sum = thread->regions->depth;
        each_cell(thread->regions->cells, [&sum](const RegionCell& cell) { sum += cell.calls + cell.time; });
        each_cell(thread->regions->metrics, [&sum](const MetricCell& cell) { sum += cell.count; });
        return sum;
      };
      const std::uint64_t first = counted();
      CHECK(first > before);
      before = first;
      wait_for_more(100);
      CHECK_EQ(counted(), first);
      reopen_regions();
      wait_for_more(10);
    }
    over = true;
    other.join();
  });
}

TEST(pauses_by_another_thread_leave_nested_time_within_time_and_threads_in_their_regions) {
  in_process([] {
    test_clock::set(0);  // the real one
    choose_regions("", 4, 4);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&over] {
        Thread& thread = this_thread();
        const Called outer = called("outer"), inner = called("inner");
        while (!over) {
          begin_region(thread, outer, 1, Opened::region);
          for (int k = 0; k < 20; ++k) {
            begin_region(thread, inner, 1, Opened::region);
            end_region(thread, inner, 1);
          }
          end_region(thread, outer, 1);
        }
        // Nobody says anything of this thread any more when the last one resumes.
        begin_region(thread, outer, 1, Opened::region);
        while (is_paused(pauses.changes.load())) std::this_thread::yield();
        for (int k = 0; k < 1000 && thread.region() == uncounted_region; ++k) std::this_thread::yield();
        CHECK_EQ(thread.region(), thread.regions->frames[1].region);
        end_region(thread, outer, 1);
        const Recorded recorded = recorded_by(thread);
        for (const auto& [place, sum] : recorded.times) CHECK(sum.nested <= sum.time && sum.max <= sum.time);
        Ticks inner_time = 0, nested = 0;
        for (const auto& [place, sum] : recorded.times) {
          inner_time += std::get<0>(place) == "outer/inner" ? sum.time : 0;
          nested += sum.nested;
        }
        CHECK_EQ(nested, inner_time);
      });
    }
    for (int i = 0; i < (is_slow ? 2'000 : 5'000); ++i) {
      pause_counting();
      if (i % 3 == 0) std::this_thread::yield();
      resume_counting();
    }
    pause_counting();
    over = true;
    resume_counting();
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace commlens
