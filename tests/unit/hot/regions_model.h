// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/hot/recorded_regions.h"

// A model of regions in the plainest way: paths, and a clock of its own that stands while counting is paused.
namespace commlens {

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

}  // namespace commlens
