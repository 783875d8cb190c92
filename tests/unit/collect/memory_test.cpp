// SPDX-License-Identifier: Apache-2.0
// A rank that runs out of memory while it collects: whatever it lacks memory for, no other rank waits for it in vain.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <utility>

#include "core/collect/collect.h"
#include "tests/unit/check.h"
#include "tests/unit/collect/crowd.h"
#include "tests/unit/collect/virtual_job.h"

namespace {

thread_local long allowed = -1;  // allocations of this thread that succeed before all others fail; below 0: all do
thread_local long made = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  if (allowed == 0) throw std::bad_alloc();
  if (allowed > 0) --allowed;
  ++made;
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept try {
  return operator new(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace commlens {
namespace {

// The messages themselves have memory.
class Sound : public Group {
 public:
  // is_collective: with the operations of all processes
  Sound(Group& group, bool is_collective) : group_(group), is_collective_(is_collective) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  bool send(int to, const void* bytes, std::size_t size) override {
    const long before = std::exchange(allowed, -1);
    const bool sent = group_.send(to, bytes, size);
    allowed = before;
    return sent;
  }
  bool receive(int from, void* bytes, std::size_t size) override {
    const long before = std::exchange(allowed, -1);
    const bool received = group_.receive(from, bytes, size);
    allowed = before;
    return received;
  }
  bool connect() override { return group_.connect(); }
  CollectiveResult exchange(const void* own, std::size_t size, const char*& all) override {
    if (!is_collective_) return CollectiveResult::no;
    const long before = std::exchange(allowed, -1);
    const CollectiveResult outcome = group_.exchange(own, size, all);
    allowed = before;
    return outcome;
  }
  CollectiveResult gather(std::vector<char>& own) override {
    if (!is_collective_) return CollectiveResult::no;
    const long before = std::exchange(allowed, -1);
    const CollectiveResult outcome = group_.gather(own);
    allowed = before;
    return outcome;
  }
  std::string_view gathered(int rank) const override { return group_.gathered(rank); }
  bool broadcast(char& answer) override {
    const long before = std::exchange(allowed, -1);
    const bool is_sent = group_.broadcast(answer);
    allowed = before;
    return is_sent;
  }

 private:
  Group& group_;
  bool is_collective_;
};

struct Case {
  int ranks;
  unsigned long aggregators;
  bool summary;
  bool is_collective;
};

// Lets a rank of a job run out of memory after `first` allocations; returns the number of allocations that it made.
long collected(const Case& c, int poor, long first) {
  char name[] = "/tmp/commlens-memory-XXXXXX";
  const std::string folder = mkdtemp(name) != nullptr ? name : "/nonexistent";
  VirtualJob job;
  job.ranks = c.ranks;
  job.operations = 2;
  job.neighbours = 2;
  long allocations = 0;
  Crowd(job.ranks).run([&](Crowd::Member& member) {
    std::deque<CommRecord> records;
    Contribution own;
    own.counted = job.counted(member.rank(), records);
    own.destination.meta = {{"program", "virtual"}};
    own.destination.name = folder + "/profile.db";
    own.destination.quiet = true;
    own.aggregators = c.aggregators;
    own.summary = c.summary;
    Crowd::Together together(member, std::size_t{1} << 30);
    Sound group(together, c.is_collective);
    if (member.rank() == poor) {
      allowed = first;
      made = 0;
    }
    try {
      collect_together(group, std::move(own));
    } catch (const std::exception&) {  // as in core/mpi/finalize.cpp
    }
    allowed = -1;
    if (member.rank() == poor) allocations = made;
  });
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return allocations;
}

}  // namespace

// If one of them waits for ever, the alarm ends the test.
TEST(no_rank_waits_in_vain_for_one_without_memory) {
  for (const Case& c :
       {Case{2, 1, false, false}, Case{2, 1, false, true}, Case{4, 2, false, false}, Case{3, 1, true, true}}) {
    for (int poor = 0; poor < c.ranks; ++poor) {
      const long all = collected(c, poor, -1);
      const long step = all / (check::is_slow ? 5 : 30) + 1;
      for (long first = 0; first < all; first += step) {
        alarm(120);
        CHECK(collected(c, poor, first) <= all);
      }
    }
  }
  alarm(0);
}

}  // namespace commlens
