// SPDX-License-Identifier: Apache-2.0
#include "core/job/hang_report.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "core/arena/arena.h"
#include "core/hot/thread.h"
#include "core/state/journal.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/commlens-where-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

// What a process of its own, `rank` of `launch` with its arena in `folder`, writes to stderr in `life`.
std::string heard(const std::string& folder, int rank, std::uint64_t launch,
                  const std::function<void(Registry&)>& life) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    clock_is_tsc = false;
    std::string error;
    if (!folder.empty() && arena::open({folder}, error).empty()) _exit(99);
    Registry registry;
    journal::JobEntry job;
    job.rank = rank;
    job.size = 4;
    job.launch = launch;
    journal::note(job);
    add_world(registry, rank, 4);
    life(registry);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  // Whole seconds: the machine may be slow.
  for (std::size_t at = 0; (at = text.find('.', at)) != std::string::npos; ++at) {
    if (text.compare(at + 2, 2, " s") == 0) text.erase(at, 2);
  }
  return status == 0 ? text : "ended with " + std::to_string(status);
}

constexpr ReportingRank rank1{1, "MPI_Init", {-1, -2, -1}};

// Puts the calling thread into a call that began `seconds` ago.
void sit(std::uint64_t comm, CurrentCall::CommBy comm_by, std::uint32_t op, unsigned seconds, bool inside = true) {
  static thread_local char frame[64];
  Thread& thread = this_thread();
  thread.outermost = inside ? frame : nullptr;
  begin_call(thread.current, comm, now() - Ticks{1'000'000'000} * seconds, 0, op, comm_by);
}

std::string name_at(const std::string& folder, std::uint64_t launch, const Made& made) {
  return heard(folder, 1, launch, [&](Registry& registry) {
    char name[256];
    name_of_comm(registry, add_comm(registry, 1, made), 1, name, sizeof name);
    static_cast<void>(!write(STDERR_FILENO, name, strlen(name)));
  });
}

const Made pair_of_0_and_1{4000, 's', {0, 1}};

// Rank 0 got it as its third communicator.
void lead(const std::string& folder, std::uint64_t launch) {
  heard(folder, 0, launch, [](Registry& registry) {
    add_comm(registry, 0, {3000, 'd', {0}});
    add_comm(registry, 0, {3001, 'd', {0}});
    add_comm(registry, 0, pair_of_0_and_1);
  });
}

}  // namespace

TEST(a_thread_in_a_call_is_said_with_its_communicator_and_since_when) {
  const std::string text = heard("", 1, 7, [](Registry& registry) {
    const std::uint32_t row = add_comm(registry, 1, {2000, 's', {1, 3}});
    registry.name(row, "rows\nof");
    registry.handle(row, 0xabcdef);
    sit(0xabcdef, CurrentCall::handle, op::MPI_Barrier, 12);
    print_hang_report(registry, rank1);
    sit(world, CurrentCall::index, op::MPI_Wait, 3, false);
    print_hang_report(registry, rank1);
    sit(0x123, CurrentCall::handle, op::MPI_Barrier, 2);
    print_hang_report(registry, rank1);
    sit(0, CurrentCall::nothing, op::unknown, 1);
    print_hang_report(registry, {-1, "MPI_Init", {-1, -2, -1}});
  });
  const std::string expected =
      "commlens: rank 1: in MPI_Barrier on s1.1 'rows of' for 12 s\n"
      "commlens: rank 1: outside MPI, last in MPI_Wait on W0.0, which began 3 s ago\n"
      "commlens: rank 1: in MPI_Barrier for 2 s\n"
      "commlens: process ";
  CHECK_EQ(text.substr(0, expected.size()), expected);
  CHECK(text.find(": in MPI_Init for 1 s\n") != std::string::npos);
}

TEST(a_blocking_message_is_said_with_its_partners) {
  const std::string text = heard("", 1, 7, [](Registry& registry) {
    CurrentCall& current = this_thread().current;
    current.to = {3, 40};
    current.from = {-1, -1};
    for (const std::uint32_t op : {op::MPI_Ssend, op::MPI_Recv, op::MPI_Sendrecv, op::MPI_Barrier}) {
      sit(world, CurrentCall::index, op, 2);
      print_hang_report(registry, rank1);
    }
    current.from = {-2, 7};
    sit(world, CurrentCall::index, op::MPI_Probe, 2);
    print_hang_report(registry, rank1);
    sit(world, CurrentCall::index, op::MPI_Iprobe, 2);
    print_hang_report(registry, {1, "MPI_Init", {-3, -2, -31}});
  });
  CHECK_EQ(text, std::string("commlens: rank 1: in MPI_Ssend on W0.0 to its rank 3 with tag 40 for 2 s\n"
                             "commlens: rank 1: in MPI_Recv on W0.0 from any rank with any tag for 2 s\n"
                             "commlens: rank 1: in MPI_Sendrecv on W0.0 to its rank 3 with tag 40 from any rank with "
                             "any tag for 2 s\n"
                             "commlens: rank 1: in MPI_Barrier on W0.0 for 2 s\n"
                             "commlens: rank 1: in MPI_Probe on W0.0 from MPI_PROC_NULL with tag 7 for 2 s\n"
                             "commlens: rank 1: in MPI_Iprobe on W0.0 for 2 s\n"));
}

TEST(a_handle_given_out_again_means_the_newer_communicator) {
  const std::string text = heard("", 1, 7, [](Registry& registry) {
    const std::uint32_t old = add_comm(registry, 1, {2000, 's', {1, 3}});
    registry.handle(old, 0xabcdef);
    registry.freed(old);
    sit(0xabcdef, CurrentCall::handle, op::MPI_Barrier, 1);
    print_hang_report(registry, rank1);
    registry.handle(add_comm(registry, 1, {2001, 'd', {1, 3}}), 0xabcdef);
    print_hang_report(registry, rank1);
  });
  CHECK_EQ(text, std::string("commlens: rank 1: in MPI_Barrier for 1 s\n"
                             "commlens: rank 1: in MPI_Barrier on d1.2 for 1 s\n"));
}

TEST(every_thread_has_a_line_and_one_that_has_ended_has_none) {
  const std::string text = heard("", 1, 7, [](Registry& registry) {
    print_hang_report(registry, rank1);
    sit(world, CurrentCall::index, op::MPI_Barrier, 1);
    std::thread([] { sit(world, CurrentCall::index, op::MPI_Bcast, 1); }).join();
    print_hang_report(registry, rank1);
    std::thread([&] {
      sit(world, CurrentCall::index, op::MPI_Bcast, 2);
      print_hang_report(registry, rank1);
    }).join();
  });
  CHECK_EQ(text, std::string("commlens: rank 1: outside MPI, no call yet\n"
                             "commlens: rank 1: in MPI_Barrier on W0.0 for 1 s\n"
                             "commlens: rank 1, thread 0: in MPI_Barrier on W0.0 for 1 s\n"
                             "commlens: rank 1, thread 1: in MPI_Bcast on W0.0 for 2 s\n"));
}

TEST(no_line_is_lost_or_torn_when_there_are_many_threads) {
  const std::string text = heard("", 1, 7, [](Registry& registry) {
    sit(world, CurrentCall::index, op::MPI_Barrier, 1);
    std::vector<std::thread> threads;
    std::atomic<int> sitting{0};
    std::atomic<bool> over{false};
    for (int i = 0; i < 150; ++i) {
      threads.emplace_back([&] {
        sit(world, CurrentCall::index, op::MPI_Bcast, 1);
        ++sitting;
        while (!over) std::this_thread::yield();
      });
    }
    while (sitting != 150) std::this_thread::yield();
    print_hang_report(registry, rank1);
    over = true;
    for (std::thread& thread : threads) thread.join();
  });
  std::istringstream lines(text);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    const std::string what = n == 0 ? "MPI_Barrier" : "MPI_Bcast";
    // The seconds depend on how long 151 threads take to start.
    const std::string begin = "commlens: rank 1, thread " + std::to_string(n) + ": in " + what + " on W0.0 for ";
    CHECK_EQ(line.substr(0, begin.size()), begin);
    const std::size_t digits = line.find_first_not_of("0123456789", begin.size());
    CHECK(digits > begin.size() && digits != std::string::npos && line.substr(digits) == " s");
  }
  CHECK_EQ(n, 151);
}

TEST(the_number_in_a_name_is_the_leaders) {
  const Folder folder;
  lead(folder.path, 7);
  CHECK_EQ(name_at(folder.path, 7, pair_of_0_and_1), std::string("s0.3"));
}

TEST(what_cannot_be_known_of_a_name_is_a_question_mark) {
  const Folder folder;
  CHECK_EQ(name_at(folder.path, 7, pair_of_0_and_1), std::string("s0.?"));  // its leader is not here
  lead(folder.path, 8);
  CHECK_EQ(name_at(folder.path, 7, pair_of_0_and_1), std::string("s0.?"));      // a leader of another launch
  CHECK_EQ(name_at("", 7, pair_of_0_and_1), std::string("s0.?"));               // no arena
  CHECK_EQ(name_at(folder.path, 8, {4001, 's', {0, 1}}), std::string("s0.?"));  // it does not know it
  CHECK_EQ(name_at(folder.path, 8, pair_of_0_and_1), std::string("s0.3"));
  // Another world of the launch, in which rank 0 counts differently.
  heard(folder.path, 0, 8, [](Registry& registry) { add_comm(registry, 0, pair_of_0_and_1); });
  CHECK_EQ(name_at(folder.path, 8, pair_of_0_and_1), std::string("s0.?"));
}

TEST(a_garbled_arena_beside_ours_is_passed_over) {
  const Folder folder;
  lead(folder.path, 7);
  std::string good;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) good = entry.path();
  for (const std::uintmax_t size : {0, 100, 5000}) {
    const std::string copy = folder.path + "/commlens-0-" + std::to_string(size) + "-1.arena";
    std::filesystem::copy_file(good, copy);
    std::filesystem::resize_file(copy, size);
  }
  std::filesystem::create_directory(folder.path + "/commlens-0-2-1.arena");
  CHECK_EQ(name_at(folder.path, 7, pair_of_0_and_1), std::string("s0.3"));
}

TEST(a_set_is_named_by_its_members_in_the_order_of_the_profile) {
  const Folder folder;
  lead(folder.path, 7);
  const std::string text = heard(folder.path, 1, 7, [](Registry& registry) {
    const std::uint32_t theirs = add_comm(registry, 1, pair_of_0_and_1);
    const std::uint32_t own = add_comm(registry, 1, {5000, 'd', {1}});
    const std::uint32_t members[] = {world, theirs, own};
    char name[256];
    name_of_comm(registry, registry.set_of(members, 3).index, 1, name, sizeof name);
    static_cast<void>(!write(STDERR_FILENO, name, strlen(name)));
  });
  CHECK_EQ(text, std::string("{W0.0,d1.2,s0.3}"));
}

}  // namespace commlens
