// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace commlens {

// World ranks [first, end).
struct Block {
  int first = 0, end = 0;
};

// The members of a group, stored as runs: a regular pattern of 100,000 ranks takes one run.
class MemberRuns {
 public:
  // Ranks `rank`, rank + 1, ... of the group are `world`, world + stride, ... in the world.
  struct Run {
    int rank, world, stride, count;
  };

  void add(Run run);
  void add(const MemberRuns& others) {
    for (const Run& run : others.runs_) add(run);
  }
  const std::vector<Run>& runs() const { return runs_; }

  // True if the members are exactly the ranks of a block, in ascending order.
  bool are(const Block& block) const {
    return runs_.size() == 1 && runs_[0].world == block.first && runs_[0].count == block.end - block.first &&
           (runs_[0].count == 1 || runs_[0].stride == 1);
  }

  // Returns the world ranks in the order of the group: "0-3,8", "0-14:2", "5,1".
  std::string text() const;

 private:
  std::vector<Run> runs_;
};

}  // namespace commlens
