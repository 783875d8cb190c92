// SPDX-License-Identifier: Apache-2.0
#include "core/hot/requests.h"

#include <algorithm>
#include <mutex>
#include <queue>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/state/requests.h"
#include "tests/unit/check.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using shortage::NoMemory;

Cell makers[64];

Payload payload_number(std::uint64_t n) { return make_payload(&makers[n % 64], RequestFlag::active, n / 64); }

// Request handles as MPI libraries give them: small integers with a mark on top, pointers.
std::uint64_t handle_number(std::uint64_t n) { return n % 2 == 0 ? 0x98000000 + n : 0x5555557a0040 + 384 * n; }

}  // namespace

TEST(a_payload_gives_back_its_maker_and_flags) {
  for (std::uint64_t sequence : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu, 0x12345u}) {
    const Payload p = make_payload(&makers[3], RequestFlag::active | RequestFlag::receives, sequence);
    CHECK_EQ(maker_of(p), &makers[3]);
    CHECK_EQ(p & RequestFlag::all, RequestFlag::active | RequestFlag::receives);
    CHECK_EQ(p >> 48, sequence & 0xffff);
  }
  PersistentRequest persistent{&makers[5], 1, 2, 3, 4, 0, nullptr, Flow::count, PersistentRequest::no_tag, nullptr};
  const Payload p = make_payload(&persistent, RequestFlag::persistent, 9);
  CHECK_EQ(persistent_of(p), &persistent);
  CHECK_EQ(maker_of(p), &makers[5]);
}

TEST(an_empty_table_knows_no_request) {
  RequestTable table;
  CHECK_EQ(table.find(1).payload, 0u);
}

namespace {

void check_against_an_unordered_map() {
  std::mt19937_64 random(1);
  RequestTable table;
  std::unordered_map<std::uint64_t, Payload> oracle;
  std::uint64_t sequence = 0;
  for (int i = 0; i < 400'000; ++i) {
    // From a few requests under way to more than the first level holds, and back.
    const std::uint64_t spread = i / 100'000 % 2 == 0 ? 50 : 5000;
    const std::uint64_t handle = handle_number(random() % spread);
    const auto known = oracle.find(handle);
    const RequestTable::Found found = table.find(handle);
    CHECK_EQ(found.payload, known == oracle.end() ? 0 : known->second);
    if (random() % 2 == 0) {
      oracle[handle] = payload_number(++sequence);
      CHECK(table.put(handle, oracle[handle]));
      if (found.payload != 0) RequestTable::release(found);  // it had completed, but its handle came again before this
    } else if (found.payload != 0) {
      RequestTable::release(found);
      oracle.erase(handle);
    }
  }
  for (std::uint64_t n = 0; n < 5000; ++n) {
    const auto known = oracle.find(handle_number(n));
    CHECK_EQ(table.find(handle_number(n)).payload, known == oracle.end() ? 0 : known->second);
  }
}

// While it exists, no two threads use a table at the same time.
struct OneThread {
  OneThread() { RequestTable::set_for_one_thread(true); }
  ~OneThread() { RequestTable::set_for_one_thread(false); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
};

}  // namespace

TEST(requests_behave_like_an_unordered_map) { check_against_an_unordered_map(); }

TEST(requests_behave_like_an_unordered_map_with_one_thread) {
  const OneThread alone;
  check_against_an_unordered_map();
}

TEST(a_second_thread_finds_and_releases_what_one_thread_alone_has_put) {
  RequestTable table;
  {
    const OneThread alone;
    for (std::uint64_t n = 0; n < 2000; ++n) CHECK(table.put(handle_number(n), payload_number(n)));
    const RequestTable::Found late = table.find(handle_number(7));
    CHECK(table.put(handle_number(7), payload_number(9000)));
    RequestTable::release(late);  // it had completed, but its handle came again before this
    CHECK_EQ(table.find(handle_number(7)).payload, payload_number(9000));
    CHECK(table.put(handle_number(7), payload_number(7)));
  }
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const RequestTable::Found found = table.find(handle_number(n));
    CHECK_EQ(found.payload, payload_number(n));
    RequestTable::release(found);
    CHECK_EQ(table.find(handle_number(n)).payload, 0u);
  }
}

TEST(a_hundred_thousand_requests_are_remembered_until_they_complete) {
  std::mt19937_64 random(2);
  RequestTable table;
  std::vector<std::uint64_t> order;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t n = 0; n < 100'000; ++n) {
      CHECK(table.put(handle_number(n), payload_number(n)));
      if (round == 0) order.push_back(n);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::uint64_t n : order) {
      const RequestTable::Found found = table.find(handle_number(n));
      CHECK_EQ(found.payload, payload_number(n));
      RequestTable::release(found);
      CHECK_EQ(table.find(handle_number(n)).payload, 0u);
    }
  }
}

TEST(a_handle_given_out_again_before_its_release_stays_with_the_new_request) {
  RequestTable table;
  table.put(7, payload_number(1));
  const RequestTable::Found late = table.find(7);
  CHECK(table.put(7, payload_number(2)));
  RequestTable::release(late);
  CHECK_EQ(table.find(7).payload, payload_number(2));
  RequestTable::release(table.find(7));
  CHECK_EQ(table.find(7).payload, 0u);
}

TEST(a_handle_given_out_again_replaces_the_old_request_in_its_place) {
  std::mt19937_64 random(3);
  RequestTable table;
  const NoMemory soon(1);  // one level, so full that requests live behind their home
  std::vector<std::uint64_t> known;
  for (std::uint64_t n = 0; known.size() < 700; ++n) {
    if (table.put(handle_number(n), payload_number(n))) known.push_back(n);
  }
  std::shuffle(known.begin(), known.end(), random);
  for (std::size_t i = 0; i < 350; ++i) RequestTable::release(table.find(handle_number(known[i])));
  for (std::size_t i = 350; i < 700; ++i) {
    const std::uint64_t handle = handle_number(known[i]);
    CHECK(table.put(handle, payload_number(10'000 + i)));
    const RequestTable::Found found = table.find(handle);
    CHECK_EQ(found.payload, payload_number(10'000 + i));
    RequestTable::release(found);
    CHECK_EQ(table.find(handle).payload, 0u);  // nothing of the old one is left
  }
}

TEST(a_handle_given_out_again_is_the_new_request_in_whatever_level_the_old_one_lives) {
  RequestTable table;
  constexpr std::uint64_t many = 20'000;
  for (std::uint64_t n = 0; n < many; ++n) table.put(handle_number(n), payload_number(n));
  std::vector<RequestTable::Found> late;
  for (std::uint64_t n = 0; n < many; ++n) late.push_back(table.find(handle_number(n)));
  // Every other one goes, so that there is room in all levels; then all handles come again.
  for (std::uint64_t n = 0; n < many; n += 2) RequestTable::release(late[n]);
  for (std::uint64_t n = 0; n < many; ++n) CHECK(table.put(handle_number(n), payload_number(many + n)));
  for (std::uint64_t n = 1; n < many; n += 2) RequestTable::release(late[n]);
  for (std::uint64_t n = 0; n < many; ++n) {
    const RequestTable::Found found = table.find(handle_number(n));
    CHECK_EQ(found.payload, payload_number(many + n));
    if (found.payload != 0) RequestTable::release(found);
    CHECK_EQ(table.find(handle_number(n)).payload, 0u);
  }
}

TEST(a_released_request_is_not_released_twice) {
  RequestTable table;
  table.put(7, payload_number(1));
  const RequestTable::Found found = table.find(7);
  RequestTable::release(found);
  table.put(7, payload_number(2));
  RequestTable::release(found);
  CHECK_EQ(table.find(7).payload, payload_number(2));
}

TEST(only_the_request_that_was_found_changes_its_flags) {
  RequestTable table;
  const Payload inactive = make_payload(&makers[0], RequestFlag::persistent, 1);
  table.put(7, inactive);
  const RequestTable::Found found = table.find(7);
  CHECK_EQ(RequestTable::change(found, inactive | RequestFlag::active), inactive | RequestFlag::active);
  CHECK_EQ(table.find(7).payload, inactive | RequestFlag::active);
  CHECK_EQ(RequestTable::change(found, inactive), 0u);
  CHECK_EQ(table.find(7).payload, inactive | RequestFlag::active);
}

TEST(a_table_without_memory_says_so_and_keeps_what_it_has) {
  RequestTable table;
  {
    const NoMemory none;
    CHECK(!table.put(1, payload_number(1)));
    CHECK_EQ(table.find(1).payload, 0u);
  }
  const NoMemory soon(1);  // the first level, 1,024 requests
  std::uint64_t known = 0;
  std::vector<std::uint64_t> refused;
  for (std::uint64_t n = 0; n < 3000; ++n) {
    table.put(handle_number(n), payload_number(n)) ? void(++known) : refused.push_back(n);
  }
  CHECK(known > 700 && known <= 1024);
  for (const std::uint64_t n : refused) CHECK_EQ(table.find(handle_number(n)).payload, 0u);
  std::uint64_t found = 0;
  for (std::uint64_t n = 0; n < 3000; ++n) found += table.find(handle_number(n)).payload == payload_number(n) ? 1 : 0;
  CHECK_EQ(found, known);
}

TEST(persistent_requests_have_their_own_record_until_they_are_freed) {
  std::set<PersistentRequest*> all;
  for (int i = 0; i < 1000; ++i) {
    PersistentRequest* const p = new_persistent();
    CHECK(p != nullptr);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
    CHECK(all.insert(p).second);
  }
  for (PersistentRequest* const p : all) free_persistent(p);
  const NoMemory none;
  for (int i = 0; i < 1000; ++i) CHECK_EQ(all.count(new_persistent()), 1u);  // no new memory is needed
  while (new_persistent() != nullptr) {
  }
  for (PersistentRequest* const p : all) free_persistent(p);
}

namespace {

// The part of an MPI library that matters here: it hands out handles, and a handle that was freed comes next.
class Handles {
 public:
  explicit Handles(std::uint64_t n) {
    for (std::uint64_t h = 1; h <= n; ++h) free_.push_back(64 * h);
  }
  std::uint64_t take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return 0;
    const std::uint64_t handle = free_.back();
    free_.pop_back();
    return handle;
  }
  void give_back(std::uint64_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> free_;
};

struct Request {
  std::uint64_t handle;
  Payload payload;
};

// What the application does to hand a request from one thread to another.
class Mailbox {
 public:
  void post(Request r) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push(r);
  }
  bool fetch(Request& r) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty()) return false;
    r = queue_.front();
    queue_.pop();
    return true;
  }

 private:
  std::mutex mutex_;
  std::queue<Request> queue_;
};

}  // namespace

TEST(requests_started_in_some_threads_complete_in_others) {
  constexpr int starters = 2, finishers = 2;
  constexpr std::uint64_t each = 20'000;
  RequestTable table;
  Handles mpi(2000);
  Mailbox mailbox;
  std::atomic<std::uint64_t> finished{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < starters; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < each;) {
        const std::uint64_t handle = mpi.take();
        if (handle == 0) {
          std::this_thread::yield();
          continue;
        }
        const Payload payload = make_payload(&makers[t], RequestFlag::active, ++n);
        CHECK(table.put(handle, payload));
        mailbox.post({handle, payload});
      }
    });
  }
  for (int t = 0; t < finishers; ++t) {
    threads.emplace_back([&] {
      while (finished < starters * each) {
        Request r{};
        if (!mailbox.fetch(r)) {
          std::this_thread::yield();
          continue;
        }
        const RequestTable::Found found = table.find(r.handle);
        CHECK_EQ(found.payload, r.payload);
        mpi.give_back(r.handle);  // inside MPI_Wait: from here on another thread may get this handle
        if (found.payload != 0) RequestTable::release(found);
        ++finished;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t h = 1; h <= 2000; ++h) CHECK_EQ(table.find(64 * h).payload, 0u);
}

}  // namespace commlens
