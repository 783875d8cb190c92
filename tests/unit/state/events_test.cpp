// SPDX-License-Identifier: Apache-2.0
#include "core/state/events.h"

#include <cerrno>
#include <string>

#include "core/hot/regions.h"
#include "core/state/notices.h"
#include "core/state/regions.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"
#include "tests/unit/simulated_events.h"

namespace commlens {
namespace {

using simulated::state;

std::string said() {
  for (const NoticeText& n : notices()) {
    if (n.kind == Notice::events) return n.text;
  }
  return "";
}

std::uint64_t metric(const char* name) { return metric_of(name, ""); }

}  // namespace

TEST(what_happens_between_two_readings_belongs_to_one_place) {
  in_own_process([] {
    state = {};
    choose_events("cycles,branches", simulated::kernel);
    CHECK(counts_events());
    CHECK_EQ(said(), "");
    Thread& thread = this_thread();
    state.files.clear();                             // those of the trial
    note_events(thread, event_key_outside(thread));  // opens them
    const Key call = make_key(3, 7, 12, 0, true);
    simulated::pass(100, 100, 100, 10);
    note_events(thread, event_key_outside(thread));
    simulated::pass(100, 50, 25, 4);  // the kernel takes turns
    errno = 77;
    note_events(thread, event_key(call));
    CHECK_EQ(errno, 77);
    simulated::pass(100, 50, 0, 0);
    note_events(thread, event_key(make_key(3, 7, 5, 0)));  // another size
    simulated::pass(100, 1000, 1000, 999);
    note_events(thread, make_key(0, 0, 0, uncounted_region));
    const EventSums sums = events_here();
    CHECK_EQ(sums.size(), 4u);
    for (const char* const name : {"cycles", "branches"}) {
      const EventSum outside = sums.at({make_key(0, 0, 0, 0), metric(name)});
      CHECK_EQ(outside.count, 10u);
      CHECK_EQ(outside.enabled, 100u);
      const EventSum inside = sums.at({make_key(3, 7, 0, 0), metric(name)});
      CHECK_EQ(inside.count, 4u);
      CHECK_EQ(inside.enabled, 100u);
      CHECK_EQ(inside.running, 25u);
    }
    forget_events(thread);
    CHECK(events_here().empty());
  });
}

TEST(refused_events_are_named_in_one_line) {
  in_own_process([] {
    state = {};
    for (const auto config : {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS})
      state.refused[std::uint64_t{PERF_TYPE_HARDWARE} << 32 | config] = ENOENT;
    choose_events("cycles,instructions,page-faults,nonsense", simulated::kernel);
    CHECK(counts_events());
    const std::string reason = events_have_library()
                                   ? "no name of an event of this processor"
                                   : "no name of an event; libpfm4, which knows more, is not installed";
    CHECK_EQ(said(), "not counted of COMMLENS_COUNTERS: nonsense (" + reason +
                         "), cycles, instructions (this machine does not have them)");
  });
  in_own_process([] {
    state = {};
    state.refused[std::uint64_t{PERF_TYPE_HARDWARE} << 32 | PERF_COUNT_HW_CPU_CYCLES] = ENOENT;
    choose_events("cycles", simulated::kernel);
    CHECK(!counts_events());
    choose_events("", simulated::kernel);
    CHECK(!counts_events());
  });
}

TEST(a_thread_whose_events_can_no_longer_be_read_counts_nothing_more) {
  in_own_process([] {
    state = {};
    choose_events("cycles", simulated::kernel);
    state.files.clear();
    Thread& thread = this_thread();
    note_events(thread, event_key_outside(thread));
    simulated::pass(100, 100, 100, 10);
    note_events(thread, event_key_outside(thread));
    state.reads = false;
    note_events(thread, event_key_outside(thread));
    state.reads = true;
    simulated::pass(100, 100, 100, 10);
    note_events(thread, event_key_outside(thread));
    CHECK_EQ(events_here().at({make_key(0, 0, 0, 0), metric("cycles")}).count, 10u);
    CHECK(said().find("can no longer be read") != std::string::npos);
  });
}

}  // namespace commlens
