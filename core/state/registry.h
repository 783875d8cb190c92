// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/arena/format.h"
#include "core/base/clock.h"
#include "core/base/identity.h"
#include "core/hot/comm_view.h"
#include "core/hot/handles.h"
#include "core/hot/key.h"

namespace commlens {

enum class CommKind : std::uint8_t { none, intra, inter, set };

// The record of one communicator in this process.  It remains when the application frees the communicator.
struct CommRecord {
  CommView view{};
  CommKind kind = CommKind::none;
  Identity identity = 0;
  Identity kin = 0;          // shared by siblings that one collective call creates, such as the rows of a grid
  std::uint32_t parent = 0;  // index; 0: none
  std::uint32_t op = 0;      // procedure that made it; 0: predefined or unknown
  char letter = '-';
  Site site = 0;
  int leader = -1;  // world rank of rank 0; -1: outside this world
  int remote_size = 0;
  bool second_side = false;  // intercommunicators: this process is in the group whose leader comes second
  std::uint32_t count = 0;   // number of communicators this process had obtained before this one
  Ticks created = 0;
  Ticks freed = 0;  // 0: not freed
  std::string user_name;
  std::string topology;
  std::vector<std::uint32_t> members;  // of a set: indices
  std::vector<int> neighbors;          // CommView::neighbors
  std::uint32_t creations = 0;         // communicators created from this one so far
  std::uint32_t depth = 0;             // number of ancestors
  // A record may stand for many similar communicators (Registry::add_sibling); `root` is then the identity of the
  // closest ancestor with a record of its own, else 0.
  Identity root = 0;
  std::uint32_t communicators = 1;
  std::uint32_t not_freed = 1;
  std::vector<const CommView*> views;  // one per communicator that shares this record
  arena::CommState* state = nullptr;   // visible to other processes while the job runs; null: no memory
};

// The facts that a new communicator inherits from its parent.
struct Lineage {
  Identity identity;  // of the parent
  std::uint32_t depth;
  Identity root;
  Identity kin;
};

// How to find the processes of a communicator.
struct PeersOf {
  std::uint64_t handle;
  bool inter;
  bool is_known;  // the record stands for one communicator, which is not freed
};

// The communicators of this process.  Uses no MPI type; core/mpi/ fills it.
class Registry {
 public:
  Registry();

  // Adds a communicator and returns its view, or the "no communicator" view when there is no more room.
  // The record's view.index, count and created are set here.
  const CommView& add(CommRecord record, bool counts) noexcept;

  // The same for a communicator beyond COMMLENS_COMMS: shares the record with this identity, if there is one.
  const CommView& add_sibling(CommRecord record) noexcept;

  // Return the number of the next creation: on a parent, or under a key that only some members of a parent compute.
  std::uint32_t next_on_parent(std::uint32_t parent) noexcept;
  std::uint32_t next_under(Identity key) noexcept;

  void freed(std::uint32_t index) noexcept;
  void name(std::uint32_t index, const char* user_name) noexcept;
  void handle(std::uint32_t index, std::uint64_t handle) noexcept;  // from now on, `handle` stands for it

  // The pseudo-communicator for calls whose requests belong to several: `sorted` are different indices, ascending.
  // A program that waits for any of k requests on k communicators can make 2^k sets: after max_sets there is one more
  // for all others, which names no members.
  static constexpr int max_sets = 256;
  const CommView& set_of(const std::uint32_t* sorted, std::size_t n) noexcept;

  const CommView& none() const noexcept { return *none_; }
  Lineage lineage(std::uint32_t index) noexcept;
  int leader(std::uint32_t index) noexcept;
  PeersOf peers_of(std::uint32_t index) noexcept;
  // Returns the identity of a communicator that is sampled, else 0.
  Identity sampled(std::uint32_t index) noexcept;
  std::string topology(std::uint32_t index);

  // The newest communicator as other processes see it; it links to all earlier ones.  Takes no lock; null: no memory.
  const arena::CommState* newest_state() const noexcept { return newest_.load(std::memory_order_acquire); }

  // For collection, when no other thread calls MPI any more.
  const std::deque<CommRecord>& records() const noexcept { return records_; }

 private:
  arena::CommState* new_state() noexcept;
  void publish(const CommRecord& record) noexcept;
  const CommView& insert(CommRecord record, bool counts);  // with the lock held

  std::mutex mutex_;
  std::deque<CommRecord> records_;      // never moves
  arena::CommState* states_ = nullptr;  // the newest block, with `states_left_` free ones at its end
  int states_left_ = 0;
  bool states_exhausted_ = false;
  std::atomic<arena::CommState*> newest_{nullptr};
  const CommView* none_;
  std::unordered_map<Identity, std::uint32_t> counters_;
  std::unordered_map<Identity, std::uint32_t> siblings_;  // identity -> index
  std::deque<CommView> sibling_views_;                    // never move
  std::uint32_t count_ = 0;
  HandleMap sets_;  // content hash -> CommView
  std::atomic<int> set_count_{0};
  const CommView* any_set_ = nullptr;
};

}  // namespace commlens
