// SPDX-License-Identifier: Apache-2.0
#include "core/profile/members.h"

#include <algorithm>

namespace commlens {

// Extends the last run if one rule describes both.
void MemberRuns::add(Run run) {
  if (run.count == 1) run.stride = 1;
  if (runs_.empty() || run.rank != runs_.back().rank + runs_.back().count) {
    runs_.push_back(run);
    return;
  }
  Run& last = runs_.back();
  const int end = last.world + (last.count - 1) * last.stride;
  const int gap = run.world - end;
  const bool goes_on = gap > 0 && (run.count == 1 || run.stride == gap);
  if (goes_on && (last.count == 1 || last.stride == gap)) {
    last.stride = gap;
    last.count += run.count;
  } else if (goes_on && last.count == 2 && last.stride != 1) {
    // Two members at some distance are no rule yet: the second one starts a new run.
    last = {last.rank, last.world, 1, 1};
    runs_.push_back({last.rank + 1, end, gap, 1 + run.count});
  } else {
    runs_.push_back(run);
  }
}

std::string MemberRuns::text() const {
  std::vector<Run> sorted = runs_;
  std::sort(sorted.begin(), sorted.end(), [](const Run& a, const Run& b) { return a.rank < b.rank; });
  MemberRuns joined;
  for (const Run& run : sorted) joined.add(run);
  std::string text;
  const auto say = [&text](int world) { text += (text.empty() ? "" : ",") + std::to_string(world); };
  for (const Run& run : joined.runs_) {
    const int last = run.world + (run.count - 1) * run.stride;
    say(run.world);
    if (run.count == 2 && run.stride != 1) {
      say(last);
    } else if (run.count > 1) {
      text += "-" + std::to_string(last);
      if (run.stride != 1) text += ":" + std::to_string(run.stride);
    }
  }
  return text;
}

}  // namespace commlens
