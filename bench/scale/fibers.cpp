// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/fibers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>

namespace commlens::scale {
namespace {

double real_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

struct Letter {
  int from;
  std::vector<char> bytes;
  double arrives;
};

class Fiber;

struct World {
  Network network;
  Traffic traffic;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::deque<Fiber*> runnable;
  ucontext_t scheduler{};
  Fiber* running = nullptr;
  double resumed = 0;     // when it was given the processor
  double files_free = 0;  // when the file server has done what it was asked
  const std::function<void(Rank&)>* life = nullptr;
};
World* world = nullptr;

constexpr std::size_t stack_size = 512 << 10;

class Fiber : public Rank {
 public:
  explicit Fiber(int rank) : rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world->fibers.size()); }
  double clock() const override { return clock_; }

  bool send(int to, const void* bytes, std::size_t size) override {
    account();
    ++world->traffic.messages;
    world->traffic.bytes += size;
    const char* const begin = static_cast<const char*>(bytes);
    Fiber& other = *world->fibers[static_cast<std::size_t>(to)];
    const double arrives = clock_ + world->network.latency_ns + world->network.ns_per_byte * static_cast<double>(size);
    other.letters_.push_back({rank_, std::vector<char>(begin, begin + size), arrives});
    if (other.waits_for_ == rank_) {
      other.waits_for_ = -1;
      world->runnable.push_back(&other);
    }
    return true;
  }

  bool receive(int from, void* bytes, std::size_t size) override {
    while (true) {
      for (auto letter = letters_.begin(); letter != letters_.end(); ++letter) {
        if (letter->from != from) continue;
        account();
        const bool fits = letter->bytes.size() == size;
        if (fits && size != 0) std::memcpy(bytes, letter->bytes.data(), size);
        clock_ = std::max(clock_, letter->arrives);
        letters_.erase(letter);
        return fits;
      }
      waits_for_ = from;
      leave();
    }
  }

  void start(std::size_t stacks, char* memory) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = memory + stacks * stack_size;
    context_.uc_stack.ss_size = stack_size;
    context_.uc_link = nullptr;
    makecontext(&context_, &Fiber::enter, 0);
    world->runnable.push_back(this);
  }

  void resume() {
    world->running = this;
    world->resumed = real_ns();
    swapcontext(&world->scheduler, &context_);
  }

  // The time since this rank got the processor is its own.
  void account() {
    const double time = real_ns();
    clock_ += time - world->resumed;
    world->resumed = time;
  }

  // A file operation took `ns` here, which the server needs for it.
  void served(double ns) {
    clock_ = std::max(clock_, world->files_free) + ns;
    world->files_free = clock_;
    world->resumed = real_ns();
  }

 private:
  static void enter() {
    Fiber* const self = world->running;
    (*world->life)(*self);
    self->account();
    while (true) swapcontext(&self->context_, &world->scheduler);
  }
  void leave() {
    account();
    swapcontext(&context_, &world->scheduler);
  }

  ucontext_t context_{};
  int rank_;
  int waits_for_ = -1;
  double clock_ = 0;
  std::deque<Letter> letters_;
};

// An operation on a file, with its time taken by the server.
template <class Operation>
auto on_server(std::size_t bytes, bool is_name, Operation operation) {
  if (world == nullptr || world->running == nullptr) return operation();
  world->running->account();
  const double begin = real_ns();
  const auto result = operation();
  double ns = real_ns() - begin;
  const Network& network = world->network;
  if (is_name && network.file_op_ns != 0) ns = network.file_op_ns;
  if (!is_name && network.file_ns_per_byte != 0) ns = network.file_ns_per_byte * static_cast<double>(bytes);
  ++world->traffic.file_operations;
  world->traffic.file_bytes += bytes;
  world->running->served(ns);
  return result;
}

}  // namespace

Traffic run(int ranks, const Network& network, const std::function<void(Rank&)>& life) {
  World here;
  here.network = network;
  here.life = &life;
  world = &here;
  const std::size_t bytes = static_cast<std::size_t>(ranks) * stack_size;
  auto* const stacks = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stacks == MAP_FAILED) {
    std::perror("no memory for the stacks of the ranks");
    std::exit(1);
  }
  for (int rank = 0; rank < ranks; ++rank) here.fibers.push_back(std::make_unique<Fiber>(rank));
  for (int rank = 0; rank < ranks; ++rank)
    here.fibers[static_cast<std::size_t>(rank)]->start(static_cast<std::size_t>(rank), stacks);
  while (!here.runnable.empty()) {
    Fiber* const next = here.runnable.front();
    here.runnable.pop_front();
    next->resume();
  }
  here.running = nullptr;
  const Traffic traffic = here.traffic;
  here.fibers.clear();
  munmap(stacks, bytes);
  world = nullptr;
  return traffic;
}

std::uint64_t clock_here() {
  world->running->account();
  return static_cast<std::uint64_t>(world->running->clock());
}

}  // namespace commlens::scale

// The operations on files that writing a profile takes (the linker redirects them, CMakeLists.txt).
using commlens::scale::on_server;
extern "C" {
int __real_open(const char* path, int flags, ...);
ssize_t __real_write(int file, const void* bytes, size_t size);
int __real_fsync(int file);
int __real_link(const char* from, const char* to);
int __real_unlink(const char* path);
int __real_mkdir(const char* path, mode_t mode);
int __real_rename(const char* from, const char* to);

int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return on_server(0, true, [&] { return __real_open(path, flags, mode); });
}
ssize_t __wrap_write(int file, const void* bytes, size_t size) {
  return on_server(size, false, [&] { return __real_write(file, bytes, size); });
}
int __wrap_fsync(int file) {
  return on_server(0, false, [&] { return __real_fsync(file); });
}
int __wrap_link(const char* from, const char* to) {
  return on_server(0, true, [&] { return __real_link(from, to); });
}
int __wrap_unlink(const char* path) {
  return on_server(0, true, [&] { return __real_unlink(path); });
}
int __wrap_rename(const char* from, const char* to) {
  return on_server(0, true, [&] { return __real_rename(from, to); });
}
int __wrap_mkdir(const char* path, mode_t mode) {
  return on_server(0, true, [&] { return __real_mkdir(path, mode); });
}
}
