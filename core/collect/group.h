// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace commlens {

// The processes that collect one profile.  Messages between two of them arrive complete and in order, or not at all.
// After a call that returned false, no process can rely on the others: the caller gives up collecting.
class Group {
 public:
  Group() = default;
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool send(int to, const void* bytes, std::size_t size) = 0;
  virtual bool receive(int from, void* bytes, std::size_t size) = 0;
};

// Every `stride`-th process of another group.  pre: this process is one of them.
class Leaders : public Group {
 public:
  Leaders(Group& all, int stride) : all_(all), stride_(stride) {}
  int rank() const override { return all_.rank() / stride_; }
  int size() const override { return (all_.size() + stride_ - 1) / stride_; }
  bool send(int to, const void* bytes, std::size_t size) override { return all_.send(to * stride_, bytes, size); }
  bool receive(int from, void* bytes, std::size_t size) override { return all_.receive(from * stride_, bytes, size); }

 private:
  Group& all_;
  int stride_;
};

// The outcome of a message whose receiver may have no memory for it.
enum class Passed : char { yes, no_memory, broken };

// Send and receive bytes of any length.  Both ends get the same outcome.
Passed put(Group& group, int to, const std::vector<char>& bytes);
Passed take(Group& group, int from, std::vector<char>& bytes);

// The binomial tree with rank 0 as its root.  A subtree is a run of consecutive ranks, after those of its parent and of
// the parent's earlier children.
struct Tree {
  int parent = -1;  // -1: none
  std::vector<int> children;
};
Tree tree_of(const Group& group);

// Collective: reduces the `values` of all processes with fold(sum, values of one more) and returns the sum on all.
using Fold = std::function<void(std::vector<std::uint64_t>&, const std::vector<std::uint64_t>&)>;
bool everywhere(Group& group, std::vector<std::uint64_t>& values, const Fold& fold);

// Collective: broadcasts the bytes of rank 0.  A process without memory for them, and its subtree, get empty bytes.
bool from_root(Group& group, std::vector<char>& bytes);

}  // namespace commlens
