// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace commlens {

// The outcome of an operation of all processes.  no: these processes cannot do it; nothing has been sent.
enum class CollectiveResult : char { yes, no, broken };

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

  // Collective, before the first message between two processes.  Does nothing when it is repeated.
  virtual bool connect() { return true; }

  // Collective operations, in fewer rounds than messages between two processes.  All processes get the same outcome,
  // and none needs memory.
  //
  // The first operation of all, and the only one in which a process may give up waiting for the others.  all: the bytes
  // of all processes in the order of their ranks.
  virtual CollectiveResult exchange(const void* own, std::size_t size, const char*& all);
  // Sends the bytes of all processes to rank 0, where gathered() returns them.  no: they are too many.  broken: `own`
  // may be empty now.
  virtual CollectiveResult gather(std::vector<char>& own);
  virtual std::string_view gathered(int rank) const;
  // After gather(): sends the answer of rank 0 to all.
  virtual bool broadcast(char& answer);

  // Time that exchange() waited for the last process.
  virtual Ticks waited() const { return 0; }
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
enum class TransferResult : char { yes, no_memory, broken };

// Send and receive bytes of any length.  Both ends get the same outcome.
TransferResult put(Group& group, int to, const std::vector<char>& bytes);
TransferResult take(Group& group, int from, std::vector<char>& bytes);

// The binomial tree with rank 0 as its root.  A subtree is a run of consecutive ranks, after those of its parent and of
// the parent's earlier children.
struct Tree {
  class Children {
   public:
    void add(int rank) noexcept { ranks_[count_++] = rank; }
    const int* begin() const noexcept { return ranks_.data(); }
    const int* end() const noexcept { return ranks_.data() + count_; }
    std::reverse_iterator<const int*> rbegin() const noexcept { return std::make_reverse_iterator(end()); }
    std::reverse_iterator<const int*> rend() const noexcept { return std::make_reverse_iterator(begin()); }

   private:
    std::array<int, 31> ranks_;
    std::size_t count_ = 0;
  };
  int parent = -1;  // -1: none
  Children children;
};
Tree tree_of(const Group& group);

// Collective: reduces `bytes` up the tree and broadcasts the result.  `others` is a receive buffer of the same size;
// fold() merges it into `bytes`.  Allocates nothing.
bool reduce(Group& group, void* bytes, void* others, std::size_t size, const std::function<void()>& fold);

// Collective: reduces the `values` of all processes with fold(sum, values of one more) and returns the sum on all.
// Needs no memory: a process that lacks it must not keep the others waiting.
template <std::size_t count, class Fold>
bool everywhere(Group& group, std::array<std::uint64_t, count>& values, const Fold& fold) {
  std::array<std::uint64_t, count> others;
  struct {
    const Fold& fold;
    std::array<std::uint64_t, count>&sum, &one;
  } all{fold, values, others};
  return reduce(group, values.data(), others.data(), sizeof values, [&all] { all.fold(all.sum, all.one); });
}

// Collective: broadcasts the bytes of rank 0.  A process without memory for them, and its subtree, get empty bytes.
bool from_root(Group& group, std::vector<char>& bytes);

}  // namespace commlens
