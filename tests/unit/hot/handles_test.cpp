// SPDX-License-Identifier: Apache-2.0
#include "core/hot/handles.h"

#include <array>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/unit/check.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using shortage::NoMemory;

// What handles stand for does not matter here: any distinct addresses do.
std::array<char, 4096> things;
void* thing(std::uint64_t n) { return &things[n % things.size()]; }

}  // namespace

TEST(an_empty_map_knows_nothing) {
  HandleMap map;
  CHECK(map.find(1) == nullptr);
  CHECK(map.take(1) == nullptr);
}

TEST(handles_behave_like_an_unordered_map) {
  std::mt19937_64 random(1);
  HandleMap map;
  std::unordered_map<std::uint64_t, void*> oracle;
  // Handles as MPI libraries give them: small integers, pointers, negative integers.
  std::vector<std::uint64_t> handles;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    handles.push_back(0x44000000 + i);
    handles.push_back(0x555555554000 + 448 * i);
    handles.push_back(0xc4000000 + 16 * i);
  }
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t handle = handles[random() % (i < 100'000 ? 60 : handles.size())];
    const auto known = oracle.find(handle);
    switch (random() % 4) {
      case 0:
        oracle[handle] = thing(random());
        CHECK(map.put(handle, oracle[handle]));
        break;
      case 1:
        CHECK_EQ(map.take(handle), known == oracle.end() ? nullptr : known->second);
        oracle.erase(handle);
        break;
      default: CHECK_EQ(map.find(handle), known == oracle.end() ? nullptr : known->second);
    }
  }
  for (const std::uint64_t handle : handles) {
    const auto known = oracle.find(handle);
    CHECK_EQ(map.find(handle), known == oracle.end() ? nullptr : known->second);
  }
}

TEST(what_a_handle_was_when_a_call_began_is_found_after_it_was_freed) {
  HandleMap map, other;
  const auto check = [&map](std::uint64_t handle, std::uint64_t since, void* value, bool gone) {
    const HandleMap::Since found = map.find_since(handle, since);
    CHECK_EQ(found.value, value);
    CHECK_EQ(found.gone, gone);
  };
  map.put(8, thing(1));
  const std::uint64_t began = HandleMap::freed;
  check(8, began, thing(1), false);
  check(16, began, nullptr, false);  // never known: MPI may be asked
  other.put(8, thing(5));
  other.take(8);
  check(8, began, thing(1), false);
  check(16, began, nullptr, false);  // what was taken from another map is no reason not to ask
  map.take(8);
  check(8, began, thing(1), true);
  map.put(8, thing(2));  // MPI gives the handle to something else
  map.take(8);
  map.put(8, thing(3));
  check(8, began, thing(1), true);
  check(8, HandleMap::freed, thing(3), false);
  map.put(32, thing(4));  // met for the first time, by another thread
  check(32, began, thing(4), false);
  map.take(16);  // not known
  check(16, began, nullptr, true);
}

TEST(other_handles_freed_in_the_meantime_do_not_matter) {
  HandleMap map, other;
  map.put(8, thing(1));
  const std::uint64_t began = HandleMap::freed;
  for (std::uint64_t i = 0; i < 3 * HandleMap::remembered; ++i) {
    map.put(24, thing(2));
    map.take(24);
    other.take(40);
  }
  CHECK_EQ(map.find_since(8, began).value, thing(1));
  CHECK(map.find_since(48, began).gone);  // perhaps: more were taken than we remember
  const std::uint64_t later = HandleMap::freed;
  map.take(8);
  map.put(8, thing(3));
  for (std::uint64_t i = 1; i < HandleMap::remembered; ++i) {
    other.take(40);  // of another map: it has its own memory
    map.take(24);
  }
  CHECK_EQ(map.find_since(8, later).value, thing(1));
  map.take(24);
  CHECK(map.find_since(8, later).value == nullptr);
  CHECK(map.find_since(8, later).gone);
}

TEST(the_slots_of_freed_handles_are_used_again) {
  HandleMap map;
  map.put(1, thing(1));
  const HandleMap::Slots* const slots = map.slots;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t handle = 0x1000 + 64 * (i % 50);
    map.put(handle, thing(i));
    CHECK_EQ(map.find(handle), thing(i));
    CHECK_EQ(map.take(handle), thing(i));
  }
  CHECK_EQ(map.slots.load(), slots);
  CHECK_EQ(map.find(1), thing(1));
}

TEST(a_map_that_cannot_grow_says_so_and_keeps_what_it_has) {
  HandleMap map;
  {
    const NoMemory none;
    CHECK(!map.put(7, thing(7)));
    CHECK(map.find(7) == nullptr);
  }
  std::uint64_t known = 0;
  {
    const NoMemory soon(1);
    while (map.put(known + 1, thing(known + 1))) ++known;
    CHECK(known >= 80);
    for (std::uint64_t h = 1; h <= known; ++h) CHECK_EQ(map.find(h), thing(h));
    CHECK(map.find(known + 1) == nullptr);
  }
  CHECK(map.put(known + 1, thing(known + 1)));
  for (std::uint64_t h = 1; h <= known + 1; ++h) CHECK_EQ(map.find(h), thing(h));
}

TEST(readers_find_what_stays_while_a_writer_adds_and_removes) {
  HandleMap map;
  constexpr std::uint64_t lasting = 100, passing = 3000;
  for (std::uint64_t h = 1; h <= lasting; ++h) map.put(h, thing(h));
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  for (std::uint64_t r = 0; r < 2; ++r) {
    readers.emplace_back([&map, &over, r] {
      for (std::uint64_t h = r; !over; ++h) {
        CHECK_EQ(map.find(1 + h % lasting), thing(1 + h % lasting));
        CHECK(map.find(1'000'000 + h % lasting) == nullptr);
      }
    });
  }
  for (std::uint64_t round = 0; round < 3; ++round) {  // grows several times, then reuses slots
    for (std::uint64_t h = 0; h < passing; ++h) map.put(10'000 + h, thing(h));
    for (std::uint64_t h = 0; h < passing; ++h) CHECK_EQ(map.take(10'000 + h), thing(h));
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace commlens
