// SPDX-License-Identifier: Apache-2.0
// Processes in namespaces of their own, as in containers, seen from outside, from beside and from within.  As root
// only: nobody else may make them.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/arena/arena.h"
#include "core/recover/read.h"
#include "core/state/journal.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

constexpr Ns day = 86'400'000'000'000;

// Runs `body` in a process of its own that is the first of a PID namespace, with its own /proc, and in a time namespace
// whose clocks are `ahead` days ahead.  Returns its process id here.
pid_t contained(int days_ahead, const std::function<void()>& body) {
  const pid_t outer = fork();
  if (outer != 0) return outer;
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWTIME) != 0) _exit(98);
  const std::string seconds = std::to_string(days_ahead * 86'400);
  std::ofstream("/proc/self/timens_offsets") << "boottime " << seconds << " 0\nmonotonic " << seconds << " 0\n";
  const pid_t inner = fork();
  if (inner == 0) {
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("proc", "/proc", "proc", 0, nullptr) != 0) _exit(97);
    body();
    _exit(check::failures == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(inner, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 96);
}

int code_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A job in a container: it has an arena in `folder`, says so, and waits until somebody writes to it.
class Job {
 public:
  Job(const std::string& folder, int days_ahead) {
    if (pipe(ready_) != 0 || pipe(end_) != 0) std::abort();
    process_ = contained(days_ahead, [&] {
      clock_is_tsc = false;
      std::string error;
      if (arena::open({folder}, error).empty()) _exit(99);
      journal::JobEntry job;
      job.rank = 1;
      job.size = 4;
      job.started = job.counted_start = now();
      journal::note(job);
      char byte = 0;
      if (write(ready_[1], &byte, 1) != 1 || read(end_[0], &byte, 1) != 1) _exit(95);
      _exit(0);
    });
    char byte = 0;
    CHECK_EQ(read(ready_[0], &byte, 1), 1);
    // While somebody holds it, no other namespace gets its inode.
    const std::string space = "/proc/" + std::to_string(process_) + "/ns/pid_for_children";
    space_ = open(space.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(space_ >= 0);
  }
  ~Job() {
    for (const int file : {ready_[0], ready_[1], end_[0], end_[1], space_}) close(file);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  void end() {
    const char byte = 0;
    CHECK_EQ(write(end_[1], &byte, 1), 1);
    CHECK_EQ(code_of(process_), 0);
  }

 private:
  int ready_[2], end_[2];
  pid_t process_ = 0;
  int space_ = -1;
};

// What is seen of the arena from a process of its own: the view of others is looked at once in a process.
void expect(const std::string& file, arena::Liveness expected, Ns longest = day / 2) {
  arena::Reader reader;
  CHECK(reader.read(file));
  CHECK_EQ(std::string(arena::name_of(reader.liveness())), std::string(arena::name_of(expected)));
  CHECK(reader.is_of_this_boot());
  CHECK_EQ(reader.notice(), std::string());
  CHECK(reader.counted().facts.app_ns < longest);
  CHECK_EQ(reader.counted().facts.state, std::string(expected == arena::Liveness::gone ? "ended" : "running"));
}

// False where the tests themselves run in a container: what they do not see may run beside it.
bool sees_all_processes() {
  struct stat own{};
  CHECK_EQ(stat("/proc/self/ns/pid", &own), 0);
  return own.st_ino == 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
}

}  // namespace

TEST(a_process_in_a_container_is_known_from_outside_from_within_and_not_from_beside) {
  ONLY_IF(geteuid() == 0, "only root creates namespaces");
  for (const int days_ahead : {0, 20, -1}) {
    // A clock cannot be set to before the machine was started.
    std::ifstream uptime("/proc/uptime");
    double seconds = 0;
    uptime >> seconds;
    if (seconds < -days_ahead * 86'400.0) continue;
    const Folder folder;
    Job job(folder.path(), days_ahead);
    const std::string file = folder.file();
    in_own_process([&] { expect(file, arena::Liveness::running); });
    CHECK_EQ(code_of(contained(3, [&] { expect(file, arena::Liveness::unknown); })), 0);
    job.end();
    const auto afterwards = sees_all_processes() ? arena::Liveness::gone : arena::Liveness::unknown;
    in_own_process([&] { expect(file, afterwards); });
    CHECK_EQ(code_of(contained(0, [&] { expect(file, arena::Liveness::unknown); })), 0);
  }
}

TEST(time_since_the_start_is_right_across_time_namespaces) {
  ONLY_IF(geteuid() == 0, "only root creates namespaces");
  const Folder folder;
  Job job(folder.path(), 20);
  const std::string file = folder.file();
  usleep(20'000);
  for (const int days_ahead : {0, 20, 3}) {
    const auto look = [&] {
      arena::Reader reader;
      CHECK(reader.read(file));
      // From a sibling only what the process noted last is known.
      CHECK(reader.counted().facts.app_ns < day / 2);
      if (reader.liveness() == arena::Liveness::running) CHECK(reader.counted().facts.app_ns >= 20'000'000);
    };
    in_own_process(look);
    CHECK_EQ(code_of(contained(days_ahead, look)), 0);
  }
  job.end();
}

TEST(processes_of_a_time_namespace_alone_run_and_are_gone_as_others) {
  ONLY_IF(geteuid() == 0, "only root creates namespaces");
  const Folder folder;
  int ready[2], end[2];
  CHECK(pipe(ready) == 0 && pipe(end) == 0);
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWTIME) != 0) _exit(98);
    std::ofstream("/proc/self/timens_offsets") << "boottime 864000 500000000\nmonotonic 864000 0\n";
    const pid_t inner = fork();
    if (inner == 0) {
      std::string error;
      clock_is_tsc = false;
      if (arena::open({folder.path()}, error).empty()) _exit(99);
      journal::JobEntry job;
      job.rank = 0;
      job.size = 1;
      job.started = job.counted_start = now();
      journal::note(job);
      char byte = 0;
      _exit(write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 1 ? 0 : 1);
    }
    _exit(code_of(inner));
  }
  char byte = 0;
  CHECK_EQ(read(ready[0], &byte, 1), 1);
  in_own_process([&] { expect(folder.file(), arena::Liveness::running); });
  CHECK_EQ(write(end[1], &byte, 1), 1);
  CHECK_EQ(code_of(outer), 0);
  in_own_process([&] { expect(folder.file(), arena::Liveness::gone); });
}

TEST(where_there_is_no_proc_of_ours_nothing_is_gone) {
  ONLY_IF(geteuid() == 0, "only root creates namespaces");
  const Folder folder;
  live(folder.path(), [](Registry&) { raise(SIGKILL); });
  const std::string file = folder.file();
  for (const bool has_other : {false, true}) {
    in_own_process([&] {
      // Another PID namespace without a /proc of its own; then none at all.
      CHECK_EQ(unshare(CLONE_NEWNS | CLONE_NEWPID), 0);
      CHECK_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      if (!has_other) CHECK_EQ(mount("none", "/proc", "tmpfs", 0, nullptr), 0);
      in_own_process([&] {
        arena::Reader reader;
        CHECK(reader.read(file));
        CHECK_EQ(std::string(arena::name_of(reader.liveness())), std::string("unknown"));
      });
    });
  }
}

TEST(another_boot_id_on_a_file_system_in_memory_is_that_of_a_container) {
  arena::Process other = arena::this_process();
  other.boot[0] ^= 1;
  CHECK(arena::liveness_of(other, true) == arena::Liveness::unknown);
  CHECK(arena::liveness_of(other, false) == arena::Liveness::gone);
}

TEST(arenas_of_containers_have_names_of_their_own) {
  arena::Process one = arena::this_process(), other = one;
  other.namespaces.pid += 1;
  CHECK(arena::file_name(one) != arena::file_name(other));
  CHECK_EQ(arena::file_name(one).find(arena::file_prefix()), 0u);
}

}  // namespace commlens
