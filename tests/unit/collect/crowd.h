// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
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

  // A member that also passes something on to all at once, as the processes of MPI_COMM_WORLD do.
  class Together : public Group {
   public:
    // most: bytes that rank 0 has room for
    Together(Member& member, std::size_t most) : member_(member), most_(most) {}
    int rank() const override { return member_.rank(); }
    int size() const override { return member_.size(); }
    bool send(int to, const void* bytes, std::size_t size) override {
      return is_connected_ && member_.send(to, bytes, size);
    }
    bool receive(int from, void* bytes, std::size_t size) override {
      return is_connected_ && member_.receive(from, bytes, size);
    }
    bool connect() override { return is_connected_ = can_connect; }
    CollectiveResult exchange(const void* own, std::size_t size, const char*& all) override {
      all_.resize(size * static_cast<std::size_t>(this->size()));
      for (int to = 0; to < this->size(); ++to) member_.send(to, own, size);
      for (int from = 0; from < this->size(); ++from)
        member_.receive(from, all_.data() + static_cast<std::size_t>(from) * size, size);
      all = all_.data();
      return CollectiveResult::yes;
    }
    CollectiveResult gather(std::vector<char>& own) override {
      const std::uint64_t bytes = own.size();
      std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size()));
      std::uint64_t sum = 0;
      for (int to = 0; to < size(); ++to) member_.send(to, &bytes, sizeof bytes);
      for (int from = 0; from < size(); ++from) {
        std::uint64_t& size = sizes[static_cast<std::size_t>(from)];
        member_.receive(from, &size, sizeof size);
        sum += size;
      }
      if (sum > most_) return CollectiveResult::no;
      member_.send(0, own.data(), own.size());
      for (int from = 0; rank() == 0 && from < size(); ++from) {
        packages_.emplace_back(sizes[static_cast<std::size_t>(from)]);
        member_.receive(from, packages_.back().data(), packages_.back().size());
      }
      return CollectiveResult::yes;
    }
    std::string_view gathered(int rank) const override {
      const std::vector<char>& package = packages_[static_cast<std::size_t>(rank)];
      return {package.data(), package.size()};
    }
    bool broadcast(char& answer) override {
      for (int to = 1; rank() == 0 && to < size(); ++to) member_.send(to, &answer, 1);
      return rank() == 0 || member_.receive(0, &answer, 1);
    }
    Ticks waited() const override { return waiting; }

    bool can_connect = true;
    Ticks waiting = 0;

   private:
    Member& member_;
    std::size_t most_;
    bool is_connected_ = false;
    std::vector<char> all_;
    std::vector<std::vector<char>> packages_;
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
