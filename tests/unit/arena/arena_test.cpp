// SPDX-License-Identifier: Apache-2.0
#include "core/arena/arena.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "core/collect/package.h"
#include "core/hot/thread.h"
#include "core/recover/read.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/arena/killed_process.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/rank.h"

namespace commlens {

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
    begin_call(thread.current, 0xabcdef, now(), 0, 4, CurrentCall::handle);
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  const std::vector<char> bytes = packed(reader.counted(), 0, {});
  Profile profile = merged({bytes});
  CHECK_EQ(calls_in(profile, "W0.0"), 7u);
  CHECK_EQ(calls_in(profile, "s1.1"), 5u);
  CHECK_EQ(comm_named(profile, "s1.1")->user_name, std::string("rows"));
  CHECK_EQ(profile.last_calls.size(), 1u);
  if (profile.last_calls.size() != 1) return;
  CHECK(profile.last_calls[0].inside);
  CHECK_EQ(profile.last_calls[0].op, 4u);
  CHECK_EQ(profile.comms[profile.last_calls[0].comm].name, std::string("s1.1"));
}

TEST(slices_of_a_killed_process_are_those_it_had) {
  const Folder folder;
  live(folder.path(), [](Registry&) {
    begin_slices(1000);
    Thread& thread = this_thread();
    for (std::uint64_t i = 0; i < 16000; ++i) {
      thread.current.since = 1000 + i * (first_slice_width / 16);
      record(thread, make_key(world, 3 + i % 2, 1, 0), i % 3, 100, 8, 0);
    }
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  const SliceLogContent& sliced = reader.counted().slices;
  CHECK_EQ(sliced.width, 8 * first_slice_width);  // 1,000 slices in 128
  std::map<std::uint64_t, std::uint64_t> calls;
  for (const SliceEntry& entry : sliced.entries) calls[entry.slot] += entry.calls;
  CHECK_EQ(calls.size(), 125u);
  for (const auto& [slot, n] : calls) CHECK_EQ(n, 128u);
}

// What the thread counted since is in none: the number of the current slice says so.
TEST(slices_that_ended_for_lack_of_memory_stay_as_they_were) {
  const Folder folder;
  live(folder.path(), [](Registry&) {
    begin_slices(1000);
    Thread& thread = this_thread();
    for (std::uint64_t i = 0; i < 64; ++i) {
      if (i == 48) thread.slices.slot |= slices_ended;
      thread.current.since = 1000 + i * (first_slice_width / 16);
      record(thread, make_key(world, 3, 1, 0), 1, 100, 8, 0);
    }
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK_EQ(calls_of(reader), 64u);
  std::map<std::uint64_t, std::uint64_t> calls;
  for (const SliceEntry& entry : reader.counted().slices.entries) calls[entry.slot] += entry.calls;
  CHECK(calls == (std::map<std::uint64_t, std::uint64_t>{{0, 16}, {1, 16}}));
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

TEST(regions_of_a_killed_process_are_those_it_had) {
  const Folder folder;
  live(folder.path(), [](Registry&) { live_in_regions(); });
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK_EQ(reader.notice(), std::string());
  const Profile profile = merged({packed(reader.counted(), 0, {})});
  std::map<std::string, std::array<std::uint64_t, 3>> found;  // calls, open, iterations
  std::map<std::string, Ns> exclusive, sliced;
  for (const Profile::RegionRow& row : profile.region_rows) {
    const std::string& name = profile.regions[row.within.region].name;
    found[name][0] += row.calls;
    found[name][1] += row.open;
    exclusive[name] += row.time - row.nested;
    CHECK(row.nested <= row.time);
  }
  for (const Profile::RegionRow& row : profile.loop_rows)
    found[profile.regions[row.within.region].name][2] += row.calls;
  const auto is = [&found](const char* name, std::array<std::uint64_t, 3> expected) { CHECK(found[name] == expected); };
  is("main", {2, 2, 0});
  is("steps", {2, 2, 19 + 29});
  is("even", {10 + 15, 0, 0});
  is("odd", {10 + 15, 2, 0});
  double sum = 0;
  std::uint64_t values = 0;
  for (const Profile::MetricRow& row : profile.metric_rows) {
    sum += row.sum;
    values += row.count;
  }
  CHECK_EQ(values, 50u);
  CHECK_EQ(sum, 190.0 + 435.0);
  // 20 and 30 values, of which 16 places hold every second one.
  std::map<std::uint32_t, std::uint64_t> next;  // by thread
  for (const Profile::SeriesRow& row : profile.series_rows) {
    CHECK_EQ(row.number, next[row.thread]);
    CHECK_EQ(row.value, static_cast<double>(row.number));
    CHECK_EQ(profile.regions[row.within.region].name, row.number % 2 == 0 ? "even" : "odd");
    CHECK_EQ(row.within.iteration, static_cast<std::int32_t>(row.number));
    next[row.thread] += 2;
  }
  CHECK_EQ(next.size(), std::size_t{2});
  for (const auto& [thread, end] : next) CHECK(end == 20 || end == 30);
  CHECK_EQ(profile.tags.size(), 2u);
  for (const Profile::Slice& slice : profile.slices) {
    if (slice.op == region_op) sliced[profile.regions[slice.comm].name] += slice.time;
  }
  for (const char* name : {"main", "steps", "even", "odd"}) CHECK_EQ(sliced[name], exclusive[name]);
}

TEST(where_the_file_cannot_grow_counting_goes_on_and_a_reader_says_so) {
  const Folder folder;
  constexpr std::uint32_t keys = 20000;
  const int status = live(folder.path(), [](Registry& registry) {
    const rlimit limit{600 << 10, 600 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    close(STDERR_FILENO);
    errno = 0;
    for (std::uint32_t k = 0; k < keys; ++k) record(this_thread(), make_key(world, 3, 1, 0), k + 1, 1, 0, 0);
    for (int i = 0; i < 1000; ++i) add_comm(registry, 1, {Identity(3000 + i), 's', {1, 3}});
    std::uint64_t calls = 0;
    for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
      for (std::uint64_t i = 0; i <= t->table.mask; ++i) {
        if (t->table.index[i] != nullptr) calls += t->table.index[i]->calls;
      }
    }
    if (calls != keys || !arena::overflowed() || errno != 0) _exit(1);
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(std::filesystem::file_size(folder.file()) <= 600 << 10);
  arena::Reader reader;
  CHECK(reader.read(folder.file()));
  CHECK(calls_of(reader) > keys / 8 && calls_of(reader) < keys);
  CHECK_EQ(reader.notice(), std::string("its folder was full: some counts of its process are missing"));
}

// Whoever may write to the folder of arenas could put a file there and hold a lease on it: opening it waits until the
// lease is given back, 45 s.
TEST(a_file_in_place_of_the_arena_is_not_waited_for) {
  const Folder folder;
  const int status = live(folder.path(), [&folder](Registry&) {
    const std::string file = folder.file(), old = file + ".old";
    std::filesystem::rename(file, old);
    std::filesystem::copy_file(old, file);
    int ready[2];
    if (pipe(ready) != 0) _exit(2);
    const pid_t holder = fork();
    if (holder == 0) {
      signal(SIGIO, SIG_IGN);
      alarm(120);
      const bool is_held = fcntl(open(file.c_str(), O_RDONLY), F_SETLEASE, F_RDLCK) == 0;
      if (write(ready[1], is_held ? "y" : "n", 1) == 1) pause();
      _exit(0);
    }
    char is_held = 'n';
    if (read(ready[0], &is_held, 1) != 1 || is_held != 'y') _exit(3);
    alarm(20);
    close(STDERR_FILENO);
    for (std::uint32_t k = 0; k < 20000; ++k) record(this_thread(), make_key(world, 3, 1, 0), k + 1, 1, 0, 0);
    kill(holder, SIGKILL);
    _exit(arena::overflowed() ? 0 : 4);
  });
  CHECK_EQ(status, 0);
}

TEST(a_copy_meets_no_signal_at_the_limit_of_file_sizes_and_leaves_nothing) {
  const Folder folder, other;
  const std::string copy = other.path() + "/rank1.arena";
  const int status = live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    const rlimit limit{8 << 10, 8 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    errno = 0;
    _exit(!arena::copy(AT_FDCWD, (copy + ".new").c_str(), copy.c_str()) && errno == EFBIG ? 0 : 1);
  });
  CHECK_EQ(status, 0);
  CHECK_EQ(other.file(), std::string());
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

TEST(a_relative_place_is_that_of_the_start) {
  CHECK_EQ(arena::places("x/y").front(), std::filesystem::current_path().string() + "/x/y");
  CHECK_EQ(arena::places("/x").front(), std::string("/x"));
  CHECK_EQ(arena::places("").front(), std::string("/dev/shm"));
}

TEST(a_file_of_another_machine_stays_and_one_of_before_exec_does_not) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    alignas(arena::Header) static char bytes[sizeof(arena::Header)];
    auto& header = *reinterpret_cast<arena::Header*>(bytes);
    const arena::Process self = arena::this_process();
    const std::string name = folder.path() + "/" + arena::file_name(self);
    std::memcpy(header.magic, arena::magic, sizeof header.magic);
    header.process = self;
    header.process.boot[1] ^= 1;
    write_file(name, std::string(bytes, sizeof bytes));
    std::string error;
    const bool stays = arena::open({folder.path()}, error).empty() && std::filesystem::exists(name);
    header.process = self;
    write_file(name, std::string(bytes, sizeof bytes));
    _exit(stays && error.find("File exists") != std::string::npos && arena::open({folder.path()}, error) == name ? 0
                                                                                                                 : 1);
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
      for (std::uint64_t i = 0; i <= t->table.mask; ++i) {
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
    CHECK(arena::copy(AT_FDCWD, (copy + ".new").c_str(), copy.c_str()));
    raise(SIGKILL);
  });
  arena::Reader reader;
  CHECK(reader.read(copy));
  CHECK_EQ(reader.counted().facts.state, std::string("SIGTERM"));
  CHECK_EQ(calls_of(reader), 10u);
}

// The thread sanitizer keeps signals for later, and calls a race what is one on purpose: who copies does not wait for
// who counts.
#if !defined(__SANITIZE_THREAD__)
#if defined(__x86_64__)  // which can stop after each instruction
namespace {

// Where a signal may come: before each instruction of what runs between step_on() and step_off().
std::string stepped_copy;
int steps = 0, bad_steps = 0;

void on_step(int) {
  ++steps;
  arena::Reader reader;
  const bool good =
      arena::copy(AT_FDCWD, (stepped_copy + ".new").c_str(), stepped_copy.c_str()) && reader.read(stepped_copy);
  if (!good || calls_of(reader) != 10) ++bad_steps;
}
// Bit 8 of the flags: a trap after every instruction.  Not below the red zone.
__attribute__((always_inline)) inline void step_on() {
  asm volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" ::: "memory", "cc");
}
__attribute__((always_inline)) inline void step_off() {
  asm volatile("subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp" ::: "memory", "cc");
}

}  // namespace

TEST(a_signal_at_any_moment_of_growth_copies_all_that_was_there) {
  const Folder folder, other;
  stepped_copy = other.path() + "/rank1.arena";
  const int status = live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    arena::allocate(arena::Kind::none, 128 << 10);
    struct sigaction action{};
    action.sa_handler = on_step;
    sigaction(SIGTRAP, &action, nullptr);
    step_on();
    arena::allocate(arena::Kind::none, 200 << 10);
    step_off();
    _exit(steps < 100 ? 2 : bad_steps == 0 ? 0 : 1);
  });
  CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}
#endif

TEST(a_copy_made_while_the_arena_grows_has_all_that_was_there) {
  const Folder folder, other;
  const std::string copy = other.path() + "/rank1.arena";
  const int status = live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    std::atomic<bool> over{false};
    std::thread grows([&over] {
      for (int i = 0; i < 3000 && !arena::overflowed(); ++i) arena::allocate(arena::Kind::none, 40 << 10);
      over = true;
    });
    int bad = 0;
    while (!over) {
      arena::Reader reader;
      if (!arena::copy(AT_FDCWD, (copy + ".new").c_str(), copy.c_str()) || !reader.read(copy) || calls_of(reader) != 10)
        ++bad;
    }
    grows.join();
    _exit(bad == 0 ? 0 : 1);
  });
  CHECK_EQ(status, 0);
}
#endif

TEST(a_child_forked_while_another_thread_has_the_lock_goes_on) {
  const Folder folder;
  const int status = live(folder.path(), [](Registry&) {
    std::atomic<bool> over{false};
    std::thread locks([&over] {
      while (!over) {
        arena::before_fork();
        arena::after_fork_in_parent();
      }
    });
    int failed = 0;
    for (int i = 0; i < 100 && failed == 0; ++i) {
      arena::before_fork();
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        arena::after_fork_in_child(false);
        _exit(arena::allocate(arena::Kind::none, 64) == nullptr ? 1 : 0);
      }
      arena::after_fork_in_parent();
      int ended = 0;
      waitpid(child, &ended, 0);
      if (ended != 0) ++failed;
    }
    over = true;
    locks.join();
    _exit(failed);
  });
  CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

TEST(processes_are_known_by_more_than_their_number) {
  const arena::Process self = arena::this_process();
  CHECK(arena::liveness_of(self, false) == arena::Liveness::running);
  arena::Process earlier = self;
  earlier.start_time -= 1;
  CHECK(arena::liveness_of(earlier, false) == arena::Liveness::gone);
  arena::Process elsewhere = self;
  elsewhere.boot[1] ^= 1;
  CHECK(arena::liveness_of(elsewhere, false) == arena::Liveness::gone);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // it is a zombie now
  CHECK_EQ(arena::process_facts(child).start_time, 0u);
  waitpid(child, nullptr, 0);
}

}  // namespace commlens
