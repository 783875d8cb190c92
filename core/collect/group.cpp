// SPDX-License-Identifier: Apache-2.0
#include "core/collect/group.h"

#include <algorithm>
#include <new>

namespace commlens {

CollectiveResult Group::exchange(const void*, std::size_t, const char*&) { return CollectiveResult::no; }
CollectiveResult Group::gather(std::vector<char>&) { return CollectiveResult::no; }
std::string_view Group::gathered(int) const { return {}; }
bool Group::broadcast(char&) { return false; }

TransferResult put(Group& group, int to, const std::vector<char>& bytes) {
  const std::uint64_t size = bytes.size();
  char has_room = 0;
  if (!group.send(to, &size, sizeof size) || !group.receive(to, &has_room, 1)) return TransferResult::broken;
  if (has_room == 0) return TransferResult::no_memory;
  return size == 0 || group.send(to, bytes.data(), bytes.size()) ? TransferResult::yes : TransferResult::broken;
}

TransferResult take(Group& group, int from, std::vector<char>& bytes) {
  std::uint64_t size = 0;
  if (!group.receive(from, &size, sizeof size)) return TransferResult::broken;
  char has_room = 1;
  try {
    bytes.resize(size);
  } catch (const std::exception&) {  // bad_alloc, length_error
    has_room = 0;
    bytes.clear();
  }
  if (!group.send(from, &has_room, 1)) return TransferResult::broken;
  if (has_room == 0) return TransferResult::no_memory;
  return size == 0 || group.receive(from, bytes.data(), bytes.size()) ? TransferResult::yes : TransferResult::broken;
}

Tree tree_of(const Group& group) {
  Tree tree;
  const int me = group.rank();
  for (int step = 1; step < group.size(); step *= 2) {
    if ((me & step) != 0) {
      tree.parent = me - step;
      break;
    }
    if (me + step < group.size()) tree.children.add(me + step);
  }
  return tree;
}

bool reduce(Group& group, void* bytes, void* others, std::size_t size, const std::function<void()>& fold) {
  const Tree tree = tree_of(group);
  for (const int child : tree.children) {
    if (!group.receive(child, others, size)) return false;
    fold();
  }
  if (tree.parent >= 0 && (!group.send(tree.parent, bytes, size) || !group.receive(tree.parent, bytes, size))) {
    return false;
  }
  return std::all_of(tree.children.rbegin(), tree.children.rend(),
                     [&](int child) { return group.send(child, bytes, size); });
}

bool from_root(Group& group, std::vector<char>& bytes) {
  const Tree tree = tree_of(group);
  if (tree.parent >= 0 && take(group, tree.parent, bytes) == TransferResult::broken) return false;
  return std::all_of(tree.children.rbegin(), tree.children.rend(),
                     [&](int child) { return put(group, child, bytes) != TransferResult::broken; });
}

}  // namespace commlens
