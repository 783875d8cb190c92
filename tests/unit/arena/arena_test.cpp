// SPDX-License-Identifier: Apache-2.0
#include "core/arena/arena.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "core/arena/read.h"
#include "core/cold/journal.h"
#include "core/cold/threads.h"
#include "core/collect/package.h"
#include "core/hot/thread.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// A folder of its own for each test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/commlens-arena-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  // The only file in it, or empty.
  std::string file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found = entry.path();
    return found;
  }

 private:
  std::string path_;
};

void note_job(int rank) {
  journal::JobEntry job;
  job.rank = rank;
  job.size = 4;
  job.launch = 77;
  job.started = now();
  job.node = "node0";
  job.output = "/tmp/x.db";
  job.meta = {{"program", "life"}};
  journal::note(job);
}

// Lets a process of its own open its arena in `folder`, be rank 1, and live until `life` returns or it is killed; how
// it ended is in the wait status.
int live(const std::string& folder, const std::function<void(Registry&)>& life) {
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    std::string error;
    if (arena::open({folder}, error).empty()) _exit(99);
    Registry registry;
    note_job(1);
    add_world(registry, 1, 4);
    life(registry);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::uint64_t calls_of(arena::Reader& reader) {
  std::uint64_t calls = 0;
  for (const auto& [key, cell] : reader.counted().cells) calls += cell.calls;
  return calls;
}

}  // namespace

TEST(what_a_killed_process_counted_is_there) {
  const Folder folder;
  const int status = live(folder.path(), [](Registry&) {
    count(world, 3, 1000, 10, 8);
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK_EQ(reader.error, std::string());
  CHECK_EQ(calls_of(reader), 1000u);
  CHECK_EQ(reader.job().rank, 1);
  CHECK_EQ(reader.job().size, 4);
  CHECK_EQ(reader.job().launch, 77u);
  CHECK_EQ(reader.counted().facts.state, std::string("ended"));
  CHECK_EQ(reader.counted().cells.begin()->second.time, 10000u);
  CHECK_EQ(reader.counted().cells.begin()->second.bytes_sent, 8000u);
}

TEST(a_profile_is_made_of_what_is_there) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    const std::uint32_t row = add_comm(registry, 1, {2000, 's', {1, 3}});
    registry.name(row, "rows");
    count(row, 3, 5);
    count(world, 4, 7);
    Thread& thread = this_thread();
    static char frame[64];
    thread.outermost = frame;
    registry.handle(row, 0xabcdef);
    thread.doing = {0xabcdef, now(), 0, 4, Doing::handle};
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  const std::vector<char> bytes = packed(reader.counted(), 0, {});
  Profile profile = merged({bytes});
  CHECK_EQ(calls_in(profile, "W0.0"), 7u);
  CHECK_EQ(calls_in(profile, "s1.1"), 5u);
  CHECK_EQ(comm_named(profile, "s1.1")->user_name, std::string("rows"));
  CHECK_EQ(profile.places.size(), 1u);
  if (profile.places.size() != 1) return;
  CHECK(profile.places[0].inside);
  CHECK_EQ(profile.places[0].op, 4u);
  CHECK_EQ(profile.comms[profile.places[0].comm].name, std::string("s1.1"));
}

TEST(slices_of_a_killed_process_are_those_it_had) {
  const Folder folder;
  live(folder.path(), [](Registry&) {
    begin_slices(1000);
    Thread& thread = this_thread();
    for (std::uint64_t i = 0; i < 16000; ++i) {
      thread.doing.since = 1000 + i * (first_slice_width / 16);
      record(thread, make_key(world, 3 + i % 2, 1, 0), i % 3, 100, 8, 0);
    }
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  const Sliced& sliced = reader.counted().slices;
  CHECK_EQ(sliced.width, 8 * first_slice_width);  // 1,000 slices in 128
  std::map<std::uint64_t, std::uint64_t> calls;
  for (const SliceEntry& entry : sliced.entries) calls[entry.slot] += entry.calls;
  CHECK_EQ(calls.size(), 125u);
  for (const auto& [slot, n] : calls) CHECK_EQ(n, 128u);
}

TEST(cells_of_all_threads_are_there_also_when_the_file_has_grown) {
  const Folder folder;
  constexpr int threads = 4, keys = 5000;
  live(folder.path(), [](Registry&) {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([] {
        for (std::uint32_t k = 0; k < keys; ++k) record(this_thread(), make_key(2, 3, 1, 0), k + 1, 1, 0, 0);
      });
    }
    for (std::thread& t : all) t.join();
    raise(SIGKILL);
  });
  CHECK(std::filesystem::file_size(folder.file()) > keys * sizeof(Cell));  // more than the first chunk
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK_EQ(calls_of(reader), std::uint64_t{threads} * keys);
  CHECK_EQ(reader.counted().cells.size(), std::size_t{keys});
}

TEST(a_file_that_is_cut_off_anywhere_is_read_as_far_as_it_goes_or_refused) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    for (int i = 0; i < 100; ++i) add_comm(registry, 1, {Identity(3000 + i), 's', {1, 3}});
    count(world, 3, 10);
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  const auto size = std::filesystem::file_size(file);
  for (auto left = size; left > 0; left -= std::min<std::uintmax_t>(left, 4096 + 37)) {
    std::filesystem::resize_file(file, left);
    arena::Reader reader;
    if (!reader.read(file)) {
      CHECK(!reader.error.empty());
      continue;
    }
    CHECK(calls_of(reader) <= 10);
    CHECK(!packed(reader.counted(), 0, {}).empty());
  }
}

TEST(garbage_is_refused_or_read_without_harm) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    add_comm(registry, 1, {2000, 's', {1, 3}});
    count(world, 3, 10);
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  std::ifstream in(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t random = 1;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (int n = 0; n < 8; ++n) {
      random = mixed(random + 1);
      // Most of what has meaning stands in the first pages.
      bad[random % (n < 6 ? 16384 : bad.size())] = static_cast<char>(random >> 32);
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    arena::Reader reader;
    if (reader.read(file)) CHECK(!packed(reader.counted(), 0, {}).empty());
  }
  for (const char* content : {"", "SQLite format 3", "CLARENA\n"}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    arena::Reader reader;
    CHECK(!reader.read(file));
    CHECK(reader.error.find(file) == 0);
  }
}

TEST(a_child_counts_nothing_into_its_parents_arena) {
  const Folder folder;
  live(folder.path(), [](Registry&) {
    count(world, 3, 10);
    arena::before_fork();
    const pid_t child = fork();
    if (child == 0) {
      arena::after_fork_in_child(true);
      count(world, 3, 1000);
      for (std::uint32_t k = 0; k < 1000; ++k) record(this_thread(), make_key(2, 3, 1, 0), k + 1, 1, 0, 0);
      _exit(0);
    }
    arena::after_fork_in_parent();
    waitpid(child, nullptr, 0);
    count(world, 3, 1);
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK_EQ(calls_of(reader), 11u);
}

TEST(places_without_room_are_passed_by) {
  const Folder folder;
  std::string error;
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    const std::string path = arena::open({"/no/such/folder", "/proc", folder.path()}, error);
    _exit(path.find(folder.path()) == 0 && error.find("/no/such/folder: ") == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST(without_any_room_memory_is_private_and_counting_goes_on) {
  const pid_t child = fork();
  if (child == 0) {
    std::string error;
    const bool none = arena::open({"/no/such/folder"}, error).empty();
    count(world, 3, 10);
    std::uint64_t calls = 0;
    for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
      for (std::uint64_t i = 0; i < t->table.capacity; ++i) {
        if (t->table.index[i] != nullptr) calls += t->table.index[i]->calls;
      }
    }
    _exit(none && !error.empty() && calls == 10 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST(a_finished_process_leaves_nothing) {
  const Folder folder;
  CHECK_EQ(live(folder.path(), [](Registry&) { arena::remove(); }), 0);
  CHECK_EQ(folder.file(), std::string());
}

TEST(how_a_process_ended_is_noted_and_copied) {
  const Folder folder, other;
  const std::string copy = other.path() + "/rank1.arena";
  live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    arena::note_state(static_cast<std::uint32_t>(arena::State::signal) + SIGTERM);
    CHECK(arena::copy((copy + ".new").c_str(), copy.c_str()));
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(copy));
  CHECK_EQ(reader.counted().facts.state, std::string("SIGTERM"));
  CHECK_EQ(calls_of(reader), 10u);
}

TEST(processes_are_known_by_more_than_their_number) {
  const arena::Process self = arena::this_process();
  CHECK(arena::is_alive(self));
  arena::Process earlier = self;
  earlier.start_time -= 1;
  CHECK(!arena::is_alive(earlier));
  arena::Process elsewhere = self;
  elsewhere.boot[1] ^= 1;
  CHECK(!arena::is_alive(elsewhere));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // it is a zombie now
  CHECK_EQ(arena::process_facts(child).start_time, 0u);
  waitpid(child, nullptr, 0);
}

}  // namespace commlens
