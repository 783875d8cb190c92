// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/collect/group.h"

namespace commlens {

// Processes of a group that are threads of one: what they send waits in a mailbox.  One runs at a time, until it waits
// for a message: what they call need not know of threads.
class Crowd {
 public:
  explicit Crowd(int size) : boxes_(static_cast<std::size_t>(size)) {}

  class Member : public Group {
   public:
    Member(Crowd& crowd, int rank) : crowd_(crowd), rank_(rank), turn_(crowd.turn_) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(crowd_.boxes_.size()); }
    bool send(int to, const void* bytes, std::size_t size) override {
      const char* const begin = static_cast<const char*>(bytes);
      Box& box = crowd_.boxes_[static_cast<std::size_t>(to)];
      box.letters.push_back({rank_, std::vector<char>(begin, begin + size)});
      ++messages;
      bytes_sent += size;
      box.arrived.notify_one();
      return true;
    }
    bool receive(int from, void* bytes, std::size_t size) override {
      Box& box = crowd_.boxes_[static_cast<std::size_t>(rank_)];
      while (true) {
        for (auto letter = box.letters.begin(); letter != box.letters.end(); ++letter) {
          if (letter->from != from) continue;
          const bool fits = letter->bytes.size() == size;
          if (fits && size != 0) std::memcpy(bytes, letter->bytes.data(), size);
          box.letters.erase(letter);
          return fits;
        }
        box.arrived.wait(turn_);
      }
    }
    std::uint64_t messages = 0, bytes_sent = 0;

   private:
    Crowd& crowd_;
    int rank_;
    std::unique_lock<std::mutex> turn_;  // for its whole life, but while it waits
  };

  // Lets every rank do the same, at the same time.
  void run(const std::function<void(Member&)>& life) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(boxes_.size()); ++rank) {
      threads.emplace_back([this, rank, &life] {
        Member member(*this, rank);
        life(member);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Letter {
    int from;
    std::vector<char> bytes;
  };
  struct Box {
    std::condition_variable arrived;
    std::deque<Letter> letters;
  };
  std::mutex turn_;
  std::deque<Box> boxes_;  // never move
};

}  // namespace commlens
