// SPDX-License-Identifier: Apache-2.0
// Arenas that say what no process would.  They are made by the functions that write arenas, so that all checks hold.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/arena/arena.h"
#include "core/hot/series.h"
#include "core/recover/merge.h"
#include "core/recover/read.h"
#include "core/state/datatypes.h"
#include "core/state/events.h"
#include "core/state/journal.h"
#include "generated/procedures.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// Lets a process forge an arena, reads, merges and stores it, and looks at the profile.  Nothing of that may take more
// than 64 MiB.
void forge(const std::function<void()>& life, const std::function<void(const std::string& file)>& change = {},
           const std::function<void(const arena::Reader&, const Profile&)>& look = {}) {
  const Folder folder;
  live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    life();
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  if (change) change(file);
  in_own_process([&] {
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    Readers readers;
    readers.push_back(std::make_unique<arena::Reader>());
    CHECK(readers[0]->read(file));
    if (!readers[0]->error.empty()) return;
    const Profile profile = profile_of(readers, [](const std::string& what) { CHECK_EQ(what, std::string()); });
    const out::Stored stored = out::store(profile, meta_of(readers[0]->job(), profile), folder.path() + "/x.db", {});
    CHECK_EQ(stored.error, std::string());
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10);  // KiB
    if (look) look(*readers[0], profile);
  });
}

bool is_damaged(const arena::Reader& reader) { return reader.notice().find("damaged: ") != std::string::npos; }

CommRecord comm_of(std::uint32_t index) {
  CommRecord record;
  record.view.index = index;
  record.view.size = 4;
  record.kind = CommKind::intra;
  record.identity = 5000 + index;
  record.letter = 's';
  return record;
}

// Adds an entry as it stands there, with the check that it needs.
void add_entry(journal::Entry entry, const WireWriter& content) {
  const std::vector<char>& bytes = content.bytes();
  auto* const memory =
      static_cast<char*>(arena::allocate(arena::Kind::journal, sizeof(journal::EntryHead) + bytes.size()));
  const journal::EntryHead head{entry, static_cast<std::uint32_t>(bytes.size()),
                                journal::check_of(entry, bytes.data(), bytes.size())};
  std::memcpy(memory, &head, sizeof head);
  std::memcpy(memory + sizeof head, bytes.data(), bytes.size());
  reinterpret_cast<arena::SegmentHead*>(memory)[-1].filled = sizeof head + bytes.size();
}

}  // namespace

TEST(the_index_of_a_communicator_fills_no_memory) {
  for (const std::uint32_t index : {max_comm, max_comm - 1, 1u << 20, max_comm + 1}) {
    forge([=] { journal::note(comm_of(index)); }, {},
          [](const arena::Reader& reader, const Profile& profile) {
            CHECK(is_damaged(reader));
            CHECK_EQ(profile.comms.size(), 2u);
          });
  }
}

TEST(sizes_and_ranks_beyond_all_overflow_nothing) {
  constexpr int most = std::numeric_limits<int>::max();
  const auto note_job = [](int rank, int size) {
    journal::JobEntry job;
    job.rank = rank;
    job.size = size;
    journal::note(job);
  };
  forge([=] { note_job(most - 1, most); }, {},
        [](const arena::Reader&, const Profile& profile) { CHECK_EQ(profile.ranks.size(), 1u); });
  // What makes no sense leaves what was there before.
  for (const auto& [rank, size] : {std::pair(4, 4), std::pair(-1, 4), std::pair(0, 0), std::pair(0, -1)}) {
    forge([rank = rank, size = size, note_job] { note_job(rank, size); }, {},
          [](const arena::Reader& reader, const Profile&) { CHECK(is_damaged(reader) && reader.job().size == 4); });
  }
  forge(
      [] {
        for (const int n : {most, most - 1, -2, std::numeric_limits<int>::min()}) {
          CommRecord record = comm_of(3);
          record.view.rank = record.view.size = n;
          journal::note(record);
        }
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        CHECK_EQ(profile.comms.size(), 2u);
      });
}

TEST(a_cell_of_no_procedure_is_left_out) {
  forge([] { count(max_comm, 0x3ff, 10); }, {},
        [](const arena::Reader& reader, const Profile& profile) {
          CHECK(is_damaged(reader));
          CHECK_EQ(profile.keys.size(), 1u);
        });
}

TEST(counts_in_entries_are_no_more_than_their_bytes) {
  forge(
      [] {
        WireWriter job;
        job.signed_number(1);
        job.signed_number(4);
        for (int i = 0; i < 6; ++i) job.number(1);
        for (int i = 0; i < 3; ++i) job.text("");
        job.number(~std::uint64_t{0});  // pairs
        add_entry(journal::Entry::job, job);
        WireWriter comm;
        comm.number(3);
        comm.number(1);
        for (int i = 0; i < 12; ++i) comm.number(static_cast<std::uint64_t>('a'));
        comm.text("");
        comm.number(std::uint64_t{1} << 60);  // members
        add_entry(journal::Entry::comm, comm);
        WireWriter site;
        site.number(7);
        site.number(std::uint64_t{1} << 62);  // bytes of a text
        add_entry(journal::Entry::site, site);
      },
      {}, [](const arena::Reader& reader, const Profile&) { CHECK(is_damaged(reader)); });
}

// Each of these is a key in the profile, which could not be stored at all.
TEST(what_a_file_names_twice_is_there_once) {
  forge(
      [] {
        for (const std::uint32_t number : {1u, 2u, 5u}) {
          journal::RegionEntry region;
          region.number = number;
          region.facts = {0, RegionKind::region, number == 5 ? "?3" : "same"};
          journal::note(region);
          journal::note(journal::MetricEntry{number, {number == 5 ? "?3" : "same", "s"}});
          journal::note(TagFacts{0, "key", std::string("\xff\xfe").substr(number % 2, 1)});
        }
        for (int i = 0; i < 2; ++i) {
          new (arena::allocate(arena::Kind::thread, sizeof(Thread), 0)) Thread{};
          auto* const cells = static_cast<RegionCell*>(arena::allocate(arena::Kind::regions, 8 * sizeof(RegionCell)));
          auto* const loops = static_cast<LoopCell*>(arena::allocate(arena::Kind::loops, 8 * sizeof(LoopCell)));
          auto* const values = static_cast<MetricCell*>(arena::allocate(arena::Kind::metrics, 8 * sizeof(MetricCell)));
          for (std::uint32_t n = 0; n < 8; ++n) {
            cells[n].key = make_region_key(n, 0, -1);
            loops[n].key = make_region_key(n / 2, 0, n % 2 == 0 ? -1 : 7, true);
            values[n].key = make_region_key(0, 0, -1);
            values[n].site = n;
            cells[n].calls = loops[n].bins[3] = values[n].count = 1;
          }
        }
        journal::JobEntry job;
        job.rank = 1;
        job.size = 4;
        job.meta = {{"program", "a"}, {"program", "b"}, {"ranks", "7"}, {"\xff", "c"}, {"\xfe", "d"}};
        journal::note(job);
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        std::string ranks, program;
        int unknown = 0;
        for (const auto& [key, value] : meta_of(reader.job(), profile)) {
          if (key == "ranks") ranks += value;
          if (key == "program") program += value;
          unknown += key == "\xff" || key == "\xfe" ? 1 : 0;
        }
        CHECK_EQ(ranks, std::string("4"));
        CHECK_EQ(program, std::string("b"));
        CHECK_EQ(unknown, 1);
      });
}

TEST(a_series_that_is_no_series_is_left_out_and_a_sound_one_is_there_once) {
  constexpr RegionKey here = make_region_key(0, 0, -1);
  forge(
      [] {
        journal::note(journal::MetricEntry{1, {"residual", "1"}});
        const auto add = [](std::uint64_t metric, std::uint64_t stride, std::initializer_list<SeriesValue> values) {
          const std::size_t bytes = sizeof(Series) + values.size() * sizeof(SeriesValue);
          auto* const series = static_cast<Series*>(arena::allocate(arena::Kind::series, bytes, 2));
          *series = {metric, values.size(), 9, stride, 0};
          std::copy(values.begin(), values.end(), series->values());
        };
        add(1, 2,
            {{here, 0, 100, 0.5},
             {here, 1, 100, 1.5},  // about to be replaced
             {here, 4, 100, 4.5},
             {here, 4, 100, 9.5},   // the same number again
             {here, 10, 100, 8.5},  // beyond the count
             {make_region_key(77, 0, -1), 6, 100, 6.5},
             {make_region_key(0, 0, -1, true), 6, 100, 6.5},
             {here, 6, ~Ticks{0}, 6.5},
             {here, 6, 100, std::nan("")},
             {7, 6, 100, 6.5}});
        add(1, 2, {{here, 0, 100, 3.5}, {here, 2, 100, 2.5}});  // the same thread and metric again
        add(0, 1, {{here, 0, 100, 1}});
        add(2, 1, {{here, 0, 100, 1}});
        add(1, 0, {{here, 8, 100, 1}});
        add(1, 3, {{here, 8, 100, 1}});
        add(1, std::uint64_t{1} << 63, {{here, 8, 100, 1}});
        static_cast<void>(arena::allocate(arena::Kind::series, 8, 2));
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        std::map<std::uint64_t, double> found;
        for (const Profile::SeriesRow& row : profile.series_rows) {
          CHECK_EQ(row.metric, 1u);
          CHECK_EQ(row.thread, 2u);
          CHECK(found.emplace(row.number, row.value).second);
        }
        CHECK(found == (std::map<std::uint64_t, double>{{0, 0.5}, {2, 2.5}, {4, 4.5}}));
      });
}

TEST(cells_of_threads_that_are_not_known_belong_to_the_others) {
  forge(
      [] {
        const auto add = [](std::uint32_t number, std::uint32_t kind, const char* name) {
          auto* const thread = new (arena::allocate(arena::Kind::thread, sizeof(Thread), number)) Thread{};
          std::memcpy(&thread->owner.kind, &kind, sizeof kind);
          thread->owner.threads = 1;
          std::memcpy(thread->owner.name, name, sizeof thread->owner.name);
        };
        const auto call = [](std::uint32_t number) {
          auto* const cell = static_cast<Cell*>(arena::allocate(arena::Kind::cells, sizeof(Cell), number));
          add_call(*cell, 100 + number, 8, 0);
          cell->key = make_key(0, op::MPI_Barrier, 4, 0);
        };
        add(5, ThreadOwner::one, "sixteen bytes...");
        add(300, ThreadOwner::one, "beyond all\0....");
        add(6, ThreadOwner::others, "others\0........");
        add(7, 77, "no kind\0.......");
        for (const std::uint32_t number : {5u, 300u, 6u, 7u, 9u}) call(number);
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        CHECK_EQ(profile.threads.size(), 2u);
        if (profile.threads.size() != 2) return;
        CHECK_EQ(profile.threads[0].thread, -1);
        CHECK_EQ(profile.threads[0].threads, 2u);
        CHECK_EQ(profile.threads[0].name, std::string());
        CHECK_EQ(profile.threads[1].thread, 5);
        CHECK_EQ(profile.threads[1].name, std::string("sixteen bytes..."));
        std::map<int, std::uint64_t> calls;
        Ns time = 0, time_of_all = 0;
        for (const Profile::ThreadCell& row : profile.thread_cells) {
          calls[row.thread] += row.calls;
          time += row.time;
        }
        for (const Profile::Row& row : profile.rows) time_of_all += row.time;
        // The calls of the process itself, which does not count its threads apart, and those of 300, 6, 7 and 9.
        CHECK(calls == (std::map<int, std::uint64_t>{{-1, profile.ranks[0].calls - 1}, {5, 1}}));
        CHECK_EQ(time, time_of_all);
      });
}

// Their numbers refer to each other, and cells refer to them.
TEST(datatypes_that_cannot_be_are_left_out_and_lost_ones_have_a_place) {
  constexpr std::uint64_t too_large = std::uint64_t{1} << 60;
  constexpr std::int64_t too_far = std::numeric_limits<std::int64_t>::min();
  const auto datatype = [](std::uint32_t number, const std::string& tree, std::uint64_t size = 4,
                           std::int64_t lower = 0, std::int64_t extent = 4) {
    journal::note(journal::DatatypeEntry{number, {tree, size, lower, extent, 1000 + number}});
  };
  const auto call = [](std::uint32_t combination) {
    auto* const cell = static_cast<Cell*>(arena::allocate(arena::Kind::cells, sizeof(Cell), 2));
    add_call(*cell, 100, 8, 0);
    cell->key = make_key(world, op::MPI_Send, 4, 0);
    cell->site = Site{combination} << datatypes_shift;
  };
  forge(
      [=] {
        datatype(1, "MPI_INT");
        datatype(1, "the same number again");
        datatype(0, "no number");
        datatype(2, "too large", too_large);
        datatype(2, "too low", 4, too_far);
        datatype(2, "too wide", 4, 0, too_far);
        datatype(4, std::string("\xff\x1b[31m\0", 7));  // 2 and 3 are lost
        datatype(most_datatypes + 1, "beyond all");
        datatype(~0u, "beyond all");
        const auto combine = [](std::uint32_t number, Combination of) {
          journal::note(journal::CombinationEntry{number, of});
        };
        combine(1, {1, 3, 4});
        combine(1, {4, 4, 4});
        combine(0, {1, 1, 1});
        combine(2, {5, 1, 1});
        combine(2, {1, ~0u, 1});
        combine(3, {0, 4, 0});  // 2 is lost
        combine(most_combinations + 1, {1, 1, 1});
        for (const std::uint32_t combination : {1u, 1u, 2u, 3u, 4u, most_combinations}) call(combination);
        add_entry(journal::Entry::datatype, WireWriter());
        add_entry(journal::Entry::combination, WireWriter());
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> calls;
        for (const Profile::DatatypeRow& row : profile.datatype_rows)
          calls[{row.sent, row.received, row.target}] += row.calls;
        CHECK_EQ(calls.size(), 3u);  // calls of combinations that are not known have no datatypes
        std::multiset<std::uint64_t> numbers;
        for (const auto& one : calls) numbers.insert(one.second);
        CHECK(numbers == (std::multiset<std::uint64_t>{1, 1, 2}));
        CHECK_EQ(profile.ranks[0].calls, 10u + 6u);
      });
}

TEST(the_largest_number_of_a_datatype_takes_no_more_than_its_place) {
  forge([] { journal::note(journal::DatatypeEntry{most_datatypes, {"(further datatypes)", 0, 0, 0, 7}}); }, {},
        [](const arena::Reader& reader, const Profile& profile) {
          CHECK(!is_damaged(reader));
          CHECK(profile.datatype_rows.empty());
        });
  forge([] { journal::note(journal::CombinationEntry{most_combinations, {}}); }, {},
        [](const arena::Reader& reader, const Profile&) { CHECK(!is_damaged(reader)); });
}

TEST(events_that_cannot_be_are_left_out_and_sound_ones_add_up) {
  const Key barrier = make_key(world, op::MPI_Barrier, 0, 0), outside = make_key(0, 0, 0, 0);
  const auto event = [](Key key, Site metric, std::uint64_t count, std::uint64_t enabled = 20,
                        std::uint64_t running = 10) {
    auto* const cell = static_cast<EventCell*>(arena::allocate(arena::Kind::events, sizeof(EventCell), 2));
    *cell = {key, metric, count, enabled, running, {}};
  };
  forge(
      [=] {
        journal::note(journal::MetricEntry{1, {"cycles", "1"}});
        event(barrier, 1, 5);
        event(barrier, 1, 6);
        event(make_key(world, op::MPI_Barrier, 9, 0), 1, 7);  // the size of a message: not of events
        event(outside, 1, 8);
        event(make_key(0, 0, 0, uncounted_region), 1, 100);
        event(barrier, 0, 100);
        event(barrier, 2, 100);
        event(barrier, ~Site{0}, 100);
        event(barrier, 1, ~std::uint64_t{0});
        event(barrier, 1, 100, ~std::uint64_t{0});
        event(barrier, 1, 100, 20, ~std::uint64_t{0});
        event(barrier & ~(Key{1} << 63), 1, 100);
        event(make_key(world, 0x3ff, 0, 0), 1, 100);
        event(make_key(world, op::MPI_Barrier, 0, 77), 1, 100);
        event(make_key(0, 0, 0, 77), 1, 100);
        static_cast<void>(arena::allocate(arena::Kind::events, 8, 2));
      },
      {},
      [](const arena::Reader& reader, const Profile& profile) {
        CHECK(is_damaged(reader));
        std::map<std::uint32_t, std::uint64_t> counts;
        for (const Profile::EventRow& row : profile.event_rows) {
          counts[row.op] += row.count;
          CHECK_EQ(row.region, 0u);
          CHECK_EQ(row.enabled, 2 * row.running);
        }
        CHECK(counts == (std::map<std::uint32_t, std::uint64_t>{{0, 8}, {op::MPI_Barrier, 18}}));
      });
}

TEST(the_largest_events_overflow_nothing) {
  forge(
      [] {
        journal::note(journal::MetricEntry{1, {"cycles", "1"}});
        for (int i = 0; i < 3; ++i) {
          auto* const cell = static_cast<EventCell*>(arena::allocate(arena::Kind::events, sizeof(EventCell), 2));
          *cell = {make_key(0, 0, 0, 0), 1, arena::beyond_all - 1, arena::beyond_all - 1, 0, {}};
        }
      },
      {},
      [](const arena::Reader&, const Profile& profile) {
        CHECK_EQ(profile.event_rows.size(), 1u);
        for (const Profile::EventRow& row : profile.event_rows) CHECK(row.count >> 63 == 0 && row.enabled >> 63 == 0);
      });
}

TEST(segments_in_a_hole_take_neither_memory_nor_time) {
  using arena::Kind;
  constexpr std::uint64_t size = std::uint64_t{15} << 30;
  for (const Kind kind : {Kind::cells, Kind::journal, Kind::slices, Kind::regions, Kind::peers, Kind::comms,
                          Kind::thread, Kind::events, Kind::none}) {
    const auto change = [=](const std::string& file) {
      const int descriptor = open(file.c_str(), O_RDWR);
      std::uint64_t used = 0;
      constexpr off_t used_at = offsetof(arena::Header, used);
      CHECK_EQ(pread(descriptor, &used, sizeof used, used_at), 8);
      arena::SegmentHead head{};
      head.kind = kind;
      head.bytes = kind == Kind::none ? 0 : size - used - sizeof head;  // none: nothing but heads of nothing
      head.filled = head.bytes;
      CHECK_EQ(pwrite(descriptor, &head, sizeof head, static_cast<off_t>(used)), static_cast<ssize_t>(sizeof head));
      if (kind == Kind::slices) {
        SliceBlock block{};
        block.generation = 1;
        block.width = first_slice_width;
        block.count = (head.bytes - sizeof block) / sizeof(SliceEntry);
        CHECK_EQ(pwrite(descriptor, &block, sizeof block, static_cast<off_t>(used + sizeof head)),
                 static_cast<ssize_t>(sizeof block));
      }
      CHECK_EQ(pwrite(descriptor, &size, sizeof size, used_at), 8);
      CHECK_EQ(ftruncate(descriptor, static_cast<off_t>(size)), 0);
      close(descriptor);
    };
    alarm(60);
    forge([] {}, change);
    alarm(0);
  }
}

// The last sign of life is 1,000 ticks after the begin of the call.
TEST(a_call_that_did_not_return_counts_as_time_in_MPI_up_to_the_last_sign_of_life) {
  struct Case {
    bool is_inside;
    std::uint32_t op, region;
    Ticks paused_at, paused_for;  // relative to the begin of the call; 0: no pause
    Ticks expected;
  };
  const Case cases[] = {
      {true, op::MPI_Recv, 0, 0, 0, 1000},
      {false, op::MPI_Recv, 0, 0, 0, 0},                // it returned, so its cell has its time
      {true, op::unknown, 0, 0, 0, 0},                  // MPI_Finalize
      {true, op::MPI_Recv, uncounted_region, 0, 0, 0},  // paused when it began
      {true, op::MPI_Recv, 0, 300, 200, 500},           // only what is sure to count: the time after the pause
  };
  for (const Case& c : cases) {
    const Folder folder;
    live(folder.path(), [&](Registry&) {
      count(world, 3, 10);
      Thread& thread = this_thread();
      const Ticks since = now();
      begin_call(thread.current, 1, since, 0x77, c.op, CurrentCall::index);
      thread.outermost = c.is_inside ? static_cast<char*>(__builtin_frame_address(0)) : nullptr;
      thread.count_in(c.region);
      thread.slices.logged_until = since + 1000;
      if (c.paused_for != 0) {
        Pause pause;
        pause.changes = 2;
        pause.held = since + c.paused_at;
        pause.before = c.paused_for;
        arena::note_pause(pause);
      }
      raise(SIGKILL);
    });
    in_own_process([&] {
      arena::Reader reader;
      CHECK(reader.read(folder.file()));
      Ticks time = 0;
      std::uint64_t calls = 0;
      for (const auto& [at, cell] : reader.counted().cells) {
        calls += cell.calls;
        if (at.second != 0x77) continue;
        CHECK_EQ(at.first, make_key(1, op::MPI_Recv, 0, 0));
        CHECK_EQ(cell.calls, 0u);
        CHECK_EQ(cell.time_max, cell.time);
        time += cell.time;
      }
      CHECK_EQ(time, c.expected);
      CHECK_EQ(calls, 10u);
      CHECK_EQ(reader.counted().positions.size(), 1u);
    });
  }
}

}  // namespace commlens
