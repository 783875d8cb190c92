// SPDX-License-Identifier: Apache-2.0
#include "core/profile/operations.h"

#include <map>
#include <utility>

#include "core/hot/messages.h"
#include "core/hot/samples.h"
#include "core/profile/waiting.h"

namespace commlens {
namespace {

// The sample of one member.
struct Member {
  const ChannelEnd* end;
  const MessageRow* row;

  bool is_root() const { return (static_cast<std::uint32_t>(row->tag) & SampleFlag::root) != 0; }
};
using Members = std::vector<Member>;

// How much later `a` started the operation than `b` did.
Later later_start(const Member& a, const Member& b) {
  return later(a.end->clock, a.row->posted, b.end->clock, b.row->posted);
}

class OperationSplitter {
 public:
  // Splits one operation.  members: the samples of it; pre: not empty
  void split(const Members& members) {
    const Unsplit why = why_unsplit(members);
    if (why != Unsplit::no) return lose(members, why);
    const Waits waits = waits_of(op_of_operation(members.front().end->operation));
    const std::size_t before = result.parts.size();
    for (const Member& member : members) {
      const Member& late = waited_for(member, members, waits);
      const Later until = later(late.end->clock, late.row->posted, member.end->clock, member.row->entered);
      const Ns spent = spent_in(*member.end, *member.row);
      const bool is_itself = late.row == member.row;
      if (!is_itself && until.ns > static_cast<double>(spent + until.tolerance + core_tolerance)) {
        result.parts.resize(before);
        return lose(members, Unsplit::unordered);
      }
      result.parts.push_back({member.end, member.row, late.end, late.row, is_itself ? Later{0, 0, true} : until});
    }
  }

  SplitOperations result;

 private:
  static Unsplit why_unsplit(const Members& members) {
    const ChannelEnd& first = *members.front().end;
    const std::uint32_t op = op_of_operation(first.operation);
    const Waits waits = waits_of(op);
    if (static_cast<int>(members.size()) != first.members) return Unsplit::members;
    if (waits == Waits::lower || waits == Waits::none) return Unsplit::prefix;
    std::uint32_t flags = 0;
    for (const Member& member : members) {
      flags |= static_cast<std::uint32_t>(member.row->tag);
      if (!later_start(member, members.front()).is_known) return Unsplit::machines;
    }
    if (has_no_data(op, bin_of_operation(first.operation), flags)) return Unsplit::no_data;
    return waits == Waits::last || (flags & SampleFlag::root) != 0 ? Unsplit::no : Unsplit::members;
  }

  // Returns the member for which this one waits; itself if there is none.
  static const Member& waited_for(const Member& member, const Members& members, Waits waits) {
    if (waits == Waits::others && !member.is_root()) return member;
    const Member* last = nullptr;
    for (const Member& other : members) {
      if (waits == Waits::root && !other.is_root()) continue;
      if (waits == Waits::others && other.is_root()) continue;
      if (last == nullptr || later_start(other, *last).ns > 0) last = &other;
    }
    return last != nullptr ? *last : member;
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
