// SPDX-License-Identifier: Apache-2.0
#include "core/hot/thread.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using shortage::NoMemory;

// Calls in all tables a collection would find.
std::uint64_t calls_collected() {
  std::uint64_t calls = lost_calls().calls;
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    for (std::uint64_t i = 0; i <= t->table.mask; ++i) {
      if (t->table.index[i] != nullptr) calls += t->table.index[i]->calls;
    }
    calls += t->table.overflow.calls;
  }
  return calls;
}

void count_calls(int n) {
  for (int i = 0; i < n; ++i) record(this_thread(), make_key(1, 2, 3, 0), 0, 1, 0, 0);
}

std::set<const Thread*> all_tables() {
  std::set<const Thread*> all;
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) all.insert(t);
  return all;
}

}  // namespace

TEST(a_thread_keeps_its_table) {
  Thread& t = this_thread();
  CHECK_EQ(&this_thread(), &t);
  CHECK_EQ(all_tables().count(&t), 1u);
}

TEST(threads_at_work_at_the_same_time_have_different_tables_and_every_call_is_collected) {
  const std::uint64_t before = calls_collected();
  const int threads_before = thread_count();
  std::atomic<int> started{0};
  std::vector<const Thread*> tables(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    threads.emplace_back([&, i] {
      tables[i] = &this_thread();
      for (++started; started < 4;) std::this_thread::yield();
      count_calls(1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(std::set<const Thread*>(tables.begin(), tables.end()).size(), 4u);
  CHECK_EQ(calls_collected() - before, 4000u);
  CHECK_EQ(thread_count() - threads_before, 4);
}

TEST(a_later_thread_goes_on_with_the_table_of_one_that_ended) {
  std::thread(count_calls, 1).join();
  const std::size_t tables = all_tables().size();
  const std::uint64_t before = calls_collected();
  for (int i = 0; i < 100; ++i) std::thread(count_calls, 10).join();
  CHECK_EQ(all_tables().size(), tables);
  CHECK_EQ(calls_collected() - before, 1000u);
}

TEST(a_thread_that_begins_is_in_no_call_and_in_no_region) {
  std::thread([] {
    this_thread().outermost = reinterpret_cast<char*>(&this_thread());  // it ends inside a call
    this_thread().count_in(7);
  }).join();
  std::thread([] {
    CHECK(this_thread().outermost == nullptr);
    CHECK_EQ(this_thread().region(), 0u);
  }).join();
}

TEST(calls_a_table_could_not_take_count_under_no_communicator_and_no_procedure) {
  // Bytes of a request are added under the key of its maker: that of the overflow cell must be a key as any other.
  std::thread([] { CHECK_EQ(this_thread().table.overflow.key, make_key(0, 0, 0, 0)); }).join();
}

TEST(a_thread_without_memory_runs_on_and_its_calls_are_collected) {
  const std::uint64_t before = calls_collected();
  std::thread([] {
    // Tables left by earlier tests would serve this thread, too: have them all taken.
    std::vector<std::thread> others;
    std::atomic<bool> over{false};
    std::atomic<std::size_t> started{0};
    const std::size_t idle = all_tables().size();
    for (std::size_t i = 0; i < idle; ++i) {
      others.emplace_back([&] {
        this_thread();
        for (++started; !over;) std::this_thread::yield();
      });
    }
    while (started < idle) std::this_thread::yield();
    std::thread([] {
      {
        const NoMemory none;
        count_calls(100);
      }
      count_calls(10);  // there is memory again
    }).join();
    over = true;
    for (std::thread& other : others) other.join();
  }).join();
  CHECK_EQ(calls_collected() - before, 110u);
}

TEST(scratch_grows_and_stays_when_there_is_no_memory) {
  Thread& t = this_thread();
  for (const std::size_t bytes : {1u, 4096u, 4097u, 100'000u, 10u}) {
    void* const memory = scratch(t, bytes);
    CHECK(memory != nullptr);
    std::memset(memory, 1, bytes);
    CHECK(t.scratch_bytes >= bytes);
  }
  const NoMemory none;
  CHECK(scratch(t, std::size_t{1} << 30) == nullptr);
  CHECK(scratch(t, 100'000) != nullptr);
}

// Calls of stacks that wait at the same time, and end in this order.
TEST(calls_on_several_stacks_have_scratch_memory_of_their_own) {
  Thread& t = this_thread();
  struct Taken {
    void* memory;
    std::size_t bytes;
  };
  constexpr std::size_t wanted[] = {100, 100'000, 5000};
  constexpr int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}};
  for (const auto& order : orders) {
    Taken calls[3];
    for (int i = 0; i < 3; ++i) {
      calls[i].memory = scratch(t, wanted[i]);
      calls[i].bytes = take_scratch(t);
      CHECK(calls[i].memory != nullptr && calls[i].bytes >= wanted[i]);
      std::memset(calls[i].memory, i, wanted[i]);
    }
    for (const int i : order) {
      for (std::size_t at = 0; at < wanted[i]; ++at) CHECK_EQ(int{static_cast<char*>(calls[i].memory)[at]}, i);
      give_scratch_back(t, calls[i].memory, calls[i].bytes);
      CHECK(t.scratch_bytes >= wanted[i]);
    }
    CHECK(t.scratch_bytes >= 100'000);
    std::memset(scratch(t, 100'000), 3, 100'000);
  }
}

TEST(complete_requests_may_belong_to_any_of_their_communicators_until_none_is_out) {
  CompleteRequests complete{};
  for (const std::uint32_t comm : {5u, 9u, 5u}) complete.add(comm);
  CHECK_EQ(complete.out, 3u);
  CHECK_EQ(complete.used, 2);
  CHECK_EQ(complete.comm[0], 5u);
  CHECK_EQ(complete.comm[1], 9u);
  complete.remove(2);
  CHECK_EQ(complete.used, 2);  // which ones went is not known
  complete.remove(1);
  CHECK_EQ(complete.used, 0);
  complete.add(7);
  CHECK_EQ(complete.comm[0], 7u);
  complete.remove(5);  // more than we knew of
  CHECK_EQ(complete.out, 0u);
  CHECK_EQ(complete.used, 0);
}

TEST(complete_requests_of_more_communicators_than_fit_are_known_to_be_more) {
  CompleteRequests complete{};
  for (std::uint32_t comm = 1; comm <= 100; ++comm) complete.add(comm);
  CHECK(complete.used > CompleteRequests::capacity);
  CHECK_EQ(complete.comm[CompleteRequests::capacity - 1], static_cast<std::uint32_t>(CompleteRequests::capacity));
  CHECK_EQ(complete.out, 100u);
  complete.remove(100);
  CHECK_EQ(complete.used, 0);
}

}  // namespace commlens
