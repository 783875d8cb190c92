// SPDX-License-Identifier: Apache-2.0
#include "core/process/events.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/check.h"
#include "tests/unit/process.h"
#include "tests/unit/simulated_events.h"

namespace commlens {
namespace {

using simulated::state;

std::vector<Event> events(const std::string& list) {
  std::vector<std::string> unknown;
  return events_of(list, unknown);
}

}  // namespace

TEST(names_of_events_are_those_of_perf_and_raw_numbers) {
  in_own_process([] {  // libpfm4 is opened once in a process, and the next test wants it as it chooses
    std::vector<std::string> unknown;
    const std::vector<Event> found = events_of(" cycles,,page-faults ,r01c2,rxyz,cycles,Zyklen,r", unknown);
    CHECK_EQ(found.size(), 3u);
    CHECK_EQ(found[0].name, "cycles");
    CHECK_EQ(found[1].name, "page-faults");
    CHECK(found[1].is_software && !found[0].is_software && !found[2].is_software);
    CHECK_EQ(found[2].name, "r01c2");
    CHECK_EQ(found[2].type, static_cast<std::uint32_t>(PERF_TYPE_RAW));
    CHECK_EQ(found[2].config, 0x1c2u);
    CHECK(unknown == (std::vector<std::string>{"rxyz", "Zyklen", "r"}));
    CHECK(events("").empty());
  });
}

TEST(other_names_are_those_of_libpfm4) {
  in_own_process([] {
    setenv("LIBPFM_FORCE_PMU", "skl", 1);  // Intel Skylake, whatever this processor is
    std::vector<std::string> unknown;
    const std::vector<Event> found = events_of(
        "BR_MISP_RETIRED:ALL_BRANCHES,OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_HIT,BR_MISP_RETIRED:NOTHING", unknown);
    CHECK_EQ(found.size(), events_have_library() ? 2u : 0u);
    CHECK_EQ(unknown.size(), events_have_library() ? 1u : 3u);
    CHECK_EQ(unknown.back(), "BR_MISP_RETIRED:NOTHING");
    if (found.size() != 2) return;
    // The numbers are those of Intel's manual: event 0xc5 with mask 0, event 0xb7 with mask 1 and a register of its
    // own.
    CHECK_EQ(found[0].type, static_cast<std::uint32_t>(PERF_TYPE_RAW));
    CHECK_EQ(found[0].config, 0xc5u);
    CHECK_EQ(found[0].config1, 0u);
    CHECK(!found[0].is_software);
    state = {};
    EventReader reader;
    reader.open(found, simulated::kernel);
    CHECK_EQ(state.files[1].config, 0x1b7u);
    CHECK_EQ(state.files[1].config1, 0x3f801c0001u);
    reader.close();
  });
  in_own_process([] {
    std::vector<std::string> unknown;
    const std::vector<Event> found = events_of("perf::PERF_COUNT_SW_PAGE_FAULTS", unknown);
    CHECK_EQ(found.size(), events_have_library() ? 1u : 0u);
    if (found.empty()) return;
    CHECK_EQ(found[0].type, static_cast<std::uint32_t>(PERF_TYPE_SOFTWARE));
    CHECK_EQ(found[0].config, static_cast<std::uint64_t>(PERF_COUNT_SW_PAGE_FAULTS));
    CHECK(found[0].is_software);
  });
}

TEST(a_group_has_as_many_events_as_the_processor_can_count) {
  state = {};
  state.counters = 2;
  EventReader reader;
  const std::vector<int> errors = reader.open(events("cycles,page-faults,instructions,branches"), simulated::kernel);
  CHECK(errors == std::vector<int>(4, 0));
  // Of the processor first, then those of the kernel.
  CHECK_EQ(state.files.size(), 4u);
  CHECK_EQ(state.files[0].leader, 100);
  CHECK_EQ(state.files[1].leader, 100);
  CHECK_EQ(state.files[2].leader, 102);
  CHECK_EQ(state.files[3].leader, 103);
  CHECK(state.files[0].exclude_kernel && !state.files[3].exclude_kernel);
  simulated::pass(100, 500, 250, 7);
  simulated::pass(102, 500, 200, 9);
  simulated::pass(103, 500, 500, 3);
  EventCount counts[EventReader::most] = {};
  CHECK(reader.read(counts));
  CHECK_EQ(state.system_calls, 3);
  CHECK_EQ(counts[0].count, 7u);
  CHECK_EQ(counts[0].running, 250u);
  CHECK_EQ(counts[1].count, 3u);
  CHECK_EQ(counts[1].running, 500u);
  CHECK_EQ(counts[2].count, 7u);
  CHECK_EQ(counts[3].count, 9u);
  CHECK_EQ(counts[3].enabled, 500u);
  CHECK_EQ(counts[3].running, 200u);
  reader.close();
  CHECK_EQ(state.closed, 4);
  CHECK(!reader.is_open());
}

TEST(refused_events_do_not_hinder_the_others) {
  state = {};
  state.refused[std::uint64_t{PERF_TYPE_HARDWARE} << 32 | PERF_COUNT_HW_CPU_CYCLES] = ENOENT;
  state.refused[std::uint64_t{PERF_TYPE_SOFTWARE} << 32 | PERF_COUNT_SW_CONTEXT_SWITCHES] = EACCES;
  // Refused only with the kernel's part.
  state.refused[std::uint64_t{PERF_TYPE_SOFTWARE} << 32 | PERF_COUNT_SW_PAGE_FAULTS] = -EACCES;
  EventReader reader;
  const std::vector<int> errors =
      reader.open(events("cycles,context-switches,page-faults,instructions"), simulated::kernel);
  CHECK(errors == (std::vector<int>{ENOENT, EACCES, 0, 0}));
  CHECK_EQ(state.files.size(), 2u);
  CHECK(state.files[1].exclude_kernel);
  EventCount counts[EventReader::most] = {};
  counts[0] = {5, 5, 5};
  simulated::pass(100, 10, 10, 4);
  CHECK(reader.read(counts));
  CHECK_EQ(counts[0].count, 5u);
  CHECK_EQ(counts[3].count, 4u);
  state.reads = false;
  CHECK(!reader.read(counts));
}

TEST(no_more_than_sixteen_events_are_open) {
  state = {};
  std::string list;
  for (int i = 0; i < 20; ++i) list += "r" + std::to_string(100 + i) + ",";
  EventReader reader;
  const std::vector<int> errors = reader.open(events(list), simulated::kernel);
  for (std::size_t i = 0; i < 20; ++i) CHECK_EQ(errors[i], i < EventReader::most ? 0 : ENOSPC);
}

TEST(counters_of_the_processor_are_read_without_a_system_call) {
  state = {};
  state.maps_pages = true;
  EventReader reader;
  CHECK(reader.open(events("cycles,instructions"), simulated::kernel) == std::vector<int>(2, 0));
  for (const int file : {100, 101}) {
    perf_event_mmap_page& page = state.pages[file];
    page.index = static_cast<std::uint32_t>(file - 90);
    page.cap_user_rdpmc = 1;
    page.pmc_width = 40;
    page.offset = 1'000'000;
    page.time_enabled = 900;
    page.time_running = 300;
  }
  state.registers[9] = 5;
  state.registers[10] = (std::uint64_t{1} << 40) - 3;  // 40 bits, with a sign: the kernel starts counters below 0
  EventCount counts[EventReader::most] = {};
  CHECK(reader.read(counts));
  CHECK_EQ(state.system_calls, 0);
  CHECK_EQ(counts[0].count, 1'000'005u);
  CHECK_EQ(counts[1].count, 999'997u);
  CHECK_EQ(counts[1].enabled, 900u);
  CHECK_EQ(counts[1].running, 300u);
  // With the time since the kernel last wrote the page: 1000 ticks * 6 / 2^1 + 50.
  state.pages[100].cap_user_time = 1;
  state.pages[100].time_shift = 1;
  state.pages[100].time_mult = 6;
  state.pages[100].time_offset = 50;
  CHECK(reader.read(counts));
  CHECK_EQ(counts[1].enabled, 900u + 3050u);
  CHECK_EQ(counts[1].running, 300u + 3050u);
  // An event that is not in a counter right now.
  state.pages[101].index = 0;
  simulated::pass(100, 10, 10, 77);
  CHECK(reader.read(counts));
  CHECK_EQ(state.system_calls, 1);
  CHECK_EQ(counts[0].count, 77u);
}

TEST(the_kernel_counts_page_faults_of_this_thread) {
  EventReader reader;
  CHECK_EQ(reader.open(events("page-faults"), linux_events)[0], 0);
  constexpr std::size_t pages = 200;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  madvise(memory, pages * page, MADV_NOHUGEPAGE);
  EventCount before[EventReader::most] = {}, after[EventReader::most] = {};
  CHECK(reader.read(before));
  for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
  CHECK(reader.read(after));
  CHECK(after[0].count - before[0].count >= pages);
  CHECK_EQ(after[0].running, after[0].enabled);
  munmap(memory, pages * page);
  reader.close();
}

}  // namespace commlens
