// SPDX-License-Identifier: Apache-2.0
#include "core/history/recorder.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/arena/arena.h"
#include "core/history/state.h"
#include "core/recover/between.h"
#include "core/state/datatypes.h"
#include "core/state/regions.h"
#include "core/state/series.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/rank.h"

namespace commlens::history {
namespace {

constexpr std::uint64_t launch = 77;  // of the processes of life.cpp
constexpr std::uint32_t op = 3;

// A process that waits before each step until the test asks for it.
class Steps {
 public:
  template <class Step>
  Steps(const std::string& folder, Step step) {
    CHECK_EQ(pipe(asked_.data()), 0);
    CHECK_EQ(pipe(done_.data()), 0);
    thread_ = std::thread([this, folder, step] {
      live(folder, [this, step](Registry&) {
        char any = 0;
        for (int i = 0; ::read(asked_[0], &any, 1) == 1; ++i) {
          step(i);
          if (write(done_[1], &any, 1) != 1) _exit(98);
        }
      });
    });
  }
  ~Steps() {
    thread_.join();
    for (const int file : {asked_[0], asked_[1], done_[0], done_[1]}) close(file);
  }
  void next() {
    char any = 'x';
    CHECK_EQ(write(asked_[1], &any, 1), 1);
    CHECK_EQ(::read(done_[0], &any, 1), 1);
  }
  void last() {  // in which the process ends
    const char any = 'x';
    CHECK_EQ(write(asked_[1], &any, 1), 1);
    thread_.join();
    thread_ = std::thread([] {});
  }

 private:
  std::array<int, 2> asked_{}, done_{};
  std::thread thread_;
};

std::uint64_t calls_of(const arena::Reader& reader) {
  std::uint64_t calls = 0;
  for (const auto& [key, cell] : reader.counted().cells) calls += op_of_key(cell.key) == op ? cell.calls : 0;
  return calls;
}

// The only process of a history at a time.
std::unique_ptr<arena::Reader> one_at(const std::string& path, Ns time) {
  State state;
  CHECK(state.read(path, time));
  auto all = state.readers();
  CHECK_EQ(all.size(), std::size_t{1});
  CHECK_EQ(all[0]->error, std::string());
  CHECK_EQ(all[0]->notice(), std::string());
  return std::move(all[0]);
}

// Lets a process take two steps, with a snapshot after each; returns what it counted in the second one.
std::unique_ptr<arena::Reader> between_snapshots(void (*step)(int)) {
  const Folder arenas, folder;
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  Recorder recorder(launch, {arenas.path()});
  Steps process(arenas.path(), step);
  for (const Ns time : {Ns{10}, Ns{20}}) {
    process.next();
    recorder.look();
    CHECK(writer.add(recorder.take(time)));
  }
  process.last();
  const std::string path = folder.path() + "/x/n.history";
  auto late = one_at(path, 20);
  subtract(*late, *one_at(path, 10));
  return late;
}

void check_state(const std::string& path, Ns time, std::uint64_t calls, const std::string& state) {
  const auto reader = one_at(path, time);
  CHECK_EQ(calls_of(*reader), calls);
  CHECK_EQ(reader->counted().facts.state, state);
}

}  // namespace

TEST(each_snapshot_has_what_was_counted_by_then) {
  const Folder arenas, folder;
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  Recorder recorder(launch, {arenas.path()});
  {
    Steps process(arenas.path(), [](int i) {
      if (i == 2) raise(SIGKILL);
      count(world, op, i == 0 ? 5 : 7, 1000);
    });
    process.next();
    recorder.look();
    CHECK(recorder.is_any_counting());
    CHECK(writer.add(recorder.take(10)));
    process.next();
    recorder.look();
    CHECK(writer.add(recorder.take(20)));
    process.last();
    CHECK(!recorder.is_any_counting());
    CHECK(writer.add(recorder.take(30)));
    CHECK_EQ(recorder.take(40).parts.size(), std::size_t{0});
  }
  const std::string path = folder.path() + "/x/n.history";
  check_state(path, 10, 5, "running");
  check_state(path, 19, 5, "running");
  check_state(path, 20, 12, "running");
  check_state(path, 30, 12, "ended");
  check_state(path, at_the_end, 12, "ended");
  State none;
  CHECK(!none.read(path, 9));
  CHECK_EQ(none.error, path + ": no snapshot until then");
  const auto early = one_at(path, 10), late = one_at(path, 20);
  const Ns app = late->counted().facts.app_ns;
  subtract(*late, *early);
  CHECK_EQ(calls_of(*late), std::uint64_t{7});
  CHECK_EQ(late->counted().facts.app_ns, app - early->counted().facts.app_ns);
  const auto same = one_at(path, 30);
  subtract(*same, *one_at(path, 20));
  CHECK(same->counted().cells.empty());
}

TEST(between_two_snapshots_a_metric_has_the_values_of_that_time) {
  const auto late = between_snapshots([](int i) {
    static std::uint64_t metric = 0;
    if (i == 0) {
      choose_series(16);
      metric = metric_of("m", "");
    }
    if (i == 2) _exit(0);
    Thread& thread = this_thread();
    for (int value = 0; value < 3; ++value) record_in_series(thread, metric, 10 * i + value);
  });
  const auto& series = late->counted().regions.series;
  CHECK_EQ(series.size(), std::size_t{1});
  if (series.empty()) return;
  std::vector<double> values;
  for (const auto& [number, value] : series.begin()->second) values.push_back(value.value);
  CHECK(values == (std::vector<double>{10, 11, 12}));
}

TEST(between_two_snapshots_untimed_calls_are_those_of_that_time_and_both_ends_add_to_the_error) {
  const auto late = between_snapshots([](int i) {
    if (i == 2) _exit(0);
    constexpr Ticks each = 10;
    const Key key = make_key(world, op, 4, 0);
    const auto add = [](Cell& cell, std::uint64_t calls) {
      cell.calls += calls;
      cell.bytes_sent += 8 * calls;
      cell.time += each * calls;
    };
    Thread& thread = this_thread();
    Cell& timed = *find_cell(thread.table, key, 0);
    Cell& untimed = *find_cell(thread.table, untimed_key(key), 0);
    add(timed, i == 0 ? 1024 : 2);
    timed.time_min = timed.time_max = each;
    add(untimed, i == 0 ? 100 : 50);
    untimed.time_min += i == 0 ? 400 : 49;  // the lower bits of the variance
    if (i == 0) return;
    // A call that stood for others ended in another region: there is an estimate, but no untimed call.
    const Key other = make_key(world, op, 5, 0);
    add(*find_cell(thread.table, other, 0), 1);
    find_cell(thread.table, untimed_key(other), 0)->time = 70;
  });
  CHECK_EQ(late->counted().cells.size(), std::size_t{2});
  if (late->counted().cells.empty()) return;
  const CountedCell& other = late->counted().cells.rbegin()->second;
  CHECK_EQ(other.calls, std::uint64_t{1});
  CHECK_EQ(other.untimed, std::uint64_t{0});
  CHECK_EQ(other.time, Ticks{80});
  const CountedCell& cell = late->counted().cells.begin()->second;
  CHECK_EQ(cell.calls, std::uint64_t{52});
  CHECK_EQ(cell.untimed, std::uint64_t{50});
  CHECK_EQ(cell.time, Ticks{520});
  CHECK_EQ(cell.bytes_sent, std::uint64_t{416});
  // Half of the square of a block of 64 calls of 10 ticks, for the block that had begun before.
  CHECK(cell.variance == 49 + 640 * 640 / 2);
}

TEST(between_two_snapshots_datatypes_have_the_calls_of_that_time) {
  const auto late = between_snapshots([](int i) {
    if (i == 2) _exit(0);
    has_datatypes = true;
    const auto send = [](const char* name, int calls) {
      const std::uint32_t number = number_of({name, 4, 0, 4, identity_of(name, std::strlen(name))});
      count(world, op, calls, 10, 8, with_datatype(0, number, Use::sent));
    };
    send("MPI_INT", i == 0 ? 5 : 3);
    send(i == 0 ? "MPI_DOUBLE" : "vector(1, 2, 3) of MPI_INT", 4);
  });
  const CountedDatatypes& datatypes = late->counted().datatypes;
  std::map<std::string, std::uint64_t> calls;
  for (const auto& [place, sum] : datatypes.sums) {
    calls[datatypes.facts.at(datatypes.combinations.at(std::get<2>(place)).sent).tree] = sum.calls;
    CHECK_EQ(sum.bytes_sent, 8 * sum.calls);
    CHECK_EQ(sum.time, 10 * sum.calls);
  }
  CHECK(calls == (std::map<std::string, std::uint64_t>{{"MPI_INT", 3}, {"vector(1, 2, 3) of MPI_INT", 4}}));
}

TEST(the_last_state_of_a_process_that_has_removed_its_arena_is_recorded) {
  const Folder arenas, folder;
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  Recorder recorder(launch, {arenas.path()});
  {
    Steps process(arenas.path(), [](int i) {
      if (i == 2) _exit(0);
      count(world, op, 3);
      if (i == 1) arena::remove();
    });
    process.next();
    recorder.look();
    CHECK(recorder.is_any_counting());
    process.next();
    CHECK(!recorder.is_any_counting());  // though it runs
    CHECK(writer.add(recorder.take(10)));
    process.last();
  }
  check_state(folder.path() + "/x/n.history", at_the_end, 6, "finalized");
}

TEST(only_processes_of_the_launch_are_recorded) {
  const Folder arenas;
  live(arenas.path(), [](Registry&) { raise(SIGKILL); });
  const std::string content = content_of(arenas.file());
  write_file(arenas.path() + "/other.arena", content);
  write_file(arenas.path() + "/" + arena::file_prefix() + "1-2-3.arena", std::string(100, 'x'));
  // Of another node, in a folder that all nodes share.
  std::string elsewhere = content;
  elsewhere[offsetof(arena::Header, process) + offsetof(arena::Process, boot)] ^= 1;
  write_file(arenas.path() + "/" + arena::file_prefix() + "4-5-6.arena", elsewhere);
  Recorder other(launch + 1, {arenas.path(), arenas.path() + "/none"}), same(launch, {arenas.path()});
  other.look();
  CHECK_EQ(other.take(1).parts.size(), std::size_t{0});
  same.look();
  CHECK(!same.is_any_counting());
  CHECK_EQ(same.take(1).parts.size(), std::size_t{1});
}

}  // namespace commlens::history
