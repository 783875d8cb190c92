// SPDX-License-Identifier: Apache-2.0
#include "core/profile/operations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/profile/waiting.h"
#include "core/state/messages.h"

namespace commlens {
namespace {

// The sample of one member.
struct Member {
  const ChannelEnd* end;
  const MessageRow* row;

  bool is_root() const { return (static_cast<std::uint32_t>(row->tag) & SampleFlag::root) != 0; }
};
using Members = std::vector<Member>;  // by rank in the communicator

// How much later `a` started the operation than `b` did.
Later later_start(const Member& a, const Member& b) {
  return later(a.end->clock, a.row->posted, b.end->clock, b.row->posted);
}

// For whom the members of one operation wait.
class Awaited {
 public:
  Awaited(const Members& members, Waits waits) : members_(members), waits_(waits), by_member_(members.size()) {
    switch (waits) {
      case Waits::sources: find_sources(); break;
      case Waits::lower: find_lower(); break;
      default: find_last();
    }
  }
  // Returns the member for which one waits; null: there is none.
  const Member* by(std::size_t i) const {
    switch (waits_) {
      case Waits::last: return last_;
      case Waits::root: return root_;
      case Waits::others: return members_[i].is_root() ? last_other_ : nullptr;
      default: return by_member_[i];
    }
  }
  // False if a member waits for one that has no sample, or it is unknown for whom it waits.
  bool is_whole() const { return is_whole_; }

 private:
  static void take_later(const Member*& last, const Member& member) {
    if (last == nullptr || later_start(member, *last).ns > 0) last = &member;
  }
  void find_last() {
    for (const Member& member : members_) {
      take_later(last_, member);
      member.is_root() ? void(root_ = &member) : take_later(last_other_, member);
    }
  }
  void find_lower() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      by_member_[i] = last_;
      take_later(last_, members_[i]);
    }
  }
  void find_sources() {
    const auto is_below = [](const Member& member, int rank) { return member.end->from < rank; };
    std::vector<int> found(members_.size());
    for (const Member& source : members_) {
      for (const int rank : source.end->destinations) {
        const auto to = std::lower_bound(members_.begin(), members_.end(), rank, is_below);
        if (to == members_.end() || to->end->from != rank) continue;
        const auto i = static_cast<std::size_t>(to - members_.begin());
        ++found[i];
        take_later(by_member_[i], source);
      }
    }
    for (std::size_t i = 0; i < members_.size(); ++i) is_whole_ = is_whole_ && found[i] == members_[i].end->sources;
  }

  const Members& members_;
  const Waits waits_;
  std::vector<const Member*> by_member_;
  const Member *last_ = nullptr, *last_other_ = nullptr, *root_ = nullptr;  // last_other_: the last without the root
  bool is_whole_ = true;
};

class OperationSplitter {
 public:
  // Splits one operation.  members: the samples of it; pre: not empty
  void split(const Members& members) {
    const Unsplit why = why_unsplit(members);
    if (why != Unsplit::no) return lose(members, why);
    const Waits waits = waits_of(op_of_operation(members.front().end->operation));
    const Awaited awaited(members, waits);
    if (!awaited.is_whole()) return lose(members, Unsplit::members);
    const std::size_t before = result.parts.size();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Member& member = members[i];
      const Member* const late = awaited.by(i);
      if (late == nullptr || late == &member) {
        result.parts.push_back({member.end, member.row, member.end, member.row, {0, 0, true}});
        continue;
      }
      const Later until = later(late->end->clock, late->row->posted, member.end->clock, member.row->entered);
      const Ns spent = spent_in(*member.end, *member.row);
      if (until.ns > static_cast<double>(spent + until.tolerance + core_tolerance)) {
        result.parts.resize(before);
        return lose(members, Unsplit::unordered);
      }
      result.parts.push_back({member.end, member.row, late->end, late->row, until});
    }
  }

  SplitOperations result;

 private:
  static Unsplit why_unsplit(const Members& members) {
    const ChannelEnd& first = *members.front().end;
    const std::uint32_t op = op_of_operation(first.operation);
    const Waits waits = waits_of(op);
    const bool needs_all = waits != Waits::sources;  // neighbours need not be related to all others
    if (needs_all && static_cast<int>(members.size()) != first.members) return Unsplit::members;
    if (waits == Waits::none) return Unsplit::members;  // damaged
    std::uint32_t flags = 0;
    for (const Member& member : members) {
      flags |= static_cast<std::uint32_t>(member.row->tag);
      if (member.row->posted == 0) return Unsplit::posting;  // damaged
      if (!later_start(member, members.front()).is_known) return Unsplit::machines;
    }
    if (has_no_data(op, bin_of_operation(first.operation), flags)) return Unsplit::no_data;
    const bool has_root = waits == Waits::root || waits == Waits::others;
    return !has_root || (flags & SampleFlag::root) != 0 ? Unsplit::no : Unsplit::members;
  }

  void lose(const Members& members, Unsplit why) {
    const ChannelEnd& first = *members.front().end;
    result.lost.push_back(
        {&first, first.comm, op_of_operation(first.operation), bin_of_operation(first.operation), why, 1});
  }
};

}  // namespace

SplitOperations split_operations(const ChannelEnds& ends) {
  OperationSplitter splitter;
  for (std::size_t i = 0; i < ends.size();) {
    const std::size_t first = i;
    std::map<std::uint64_t, Members> by_number;
    for (; i < ends.size() && ends[i].comm == ends[first].comm && ends[i].operation == ends[first].operation; ++i) {
      if (ends[i].operation == 0) continue;
      for (const MessageRow& row : ends[i].samples) by_number[row.number].push_back({&ends[i], &row});
    }
    for (const auto& [number, members] : by_number) splitter.split(members);
  }
  return std::move(splitter.result);
}

}  // namespace commlens
