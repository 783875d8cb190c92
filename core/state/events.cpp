// SPDX-License-Identifier: Apache-2.0
#include "core/state/events.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#include "core/arena/arena.h"
#include "core/base/memory.h"
#include "core/state/notices.h"
#include "core/state/regions.h"
#include "core/state/threads.h"

namespace commlens {

bool events_are_counted = false;

namespace {

struct Chosen {
  std::vector<Event> events;
  std::vector<std::uint64_t> metrics;  // with their names
  const EventKernel* kernel = nullptr;
};
Chosen& chosen() {
  static auto* const all = new Chosen();  // never destroyed: threads may count while the program exits
  return *all;
}

// Returns the value of perf_event_paranoid, or an empty text.
std::string paranoid_level() {
  char text[16] = "";
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "re")) {
    if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
    std::fclose(file);
  }
  return {text, std::strcspn(text, "\n")};
}

std::string reason_of(int error) {
  switch (error) {
    case EACCES:
    case EPERM: {
      const std::string level = paranoid_level();
      return "not permitted, by perf_event_paranoid" + (level.empty() ? "" : " (" + level + ")") + " or by a container";
    }
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case EOPNOTSUPP: return "this machine does not have them";
    case EINVAL: return "the kernel does not count them by thread";
    case ENOSYS: return "this kernel does not count them";
    case ENOSPC: return "more than " + std::to_string(EventReader::most) + " at a time";
    case EMFILE: return "too many open files";
    default: return "refused with error " + std::to_string(error);
  }
}

// Names what is not counted, with the reason, in one line: "cycles, instructions (this machine does not have them)".
void notice_refused(const std::vector<std::pair<std::string, std::string>>& refused) {
  if (refused.empty()) return;
  std::string text = "not counted of COMMLENS_COUNTERS: ";
  for (std::size_t i = 0; i < refused.size(); ++i) {
    const bool is_last = i + 1 == refused.size();
    text += refused[i].first;
    if (is_last || refused[i + 1].second != refused[i].second) text += " (" + refused[i].second + ")";
    if (!is_last) text += ", ";
  }
  notice(Notice::events, std::move(text));
}

// Returns the events of the calling thread, opened; null if they cannot be counted.
ThreadEvents* opened_events(Thread& thread) noexcept try {
  if (thread.events == nullptr) {
    void* const memory = map_memory(sizeof(ThreadEvents));
    if (memory == nullptr) return nullptr;
    thread.events = new (memory) ThreadEvents{};
    thread.events->slice_end = thread.due();
    thread.wait_until(1);
  }
  ThreadEvents& own = *thread.events;
  if (own.reader.is_open()) return &own;
  if (own.has_failed) return nullptr;
  if (chosen().kernel == nullptr) return nullptr;
  const std::vector<int> errors = own.reader.open(chosen().events, *chosen().kernel);
  const auto refused = std::find_if(errors.begin(), errors.end(), [](int error) { return error != 0; });
  own.has_failed = refused != errors.end() || !own.reader.read(own.last);
  if (!own.has_failed) return &own;
  own.reader.close();
  notice_refused({{"all events of thread " + std::to_string(thread.number),
                   refused != errors.end() ? reason_of(*refused) : "they cannot be read"}});
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::uint64_t since(std::uint64_t now, std::uint64_t before) noexcept { return now > before ? now - before : 0; }

}  // namespace

void choose_events(const std::string& list, const EventKernel& kernel) {
  events_are_counted = false;
  std::vector<std::string> unknown;
  std::vector<Event> wanted = events_of(list, unknown);
  std::vector<std::pair<std::string, std::string>> refused;
  refused.reserve(unknown.size());
  for (const std::string& name : unknown)
    refused.emplace_back(name, events_have_library()
                                   ? "no name of an event of this processor"
                                   : "no name of an event; libpfm4, which knows more, is not installed");
  EventReader trial;
  const std::vector<int> errors = trial.open(wanted, kernel);
  trial.close();
  Chosen& all = chosen();
  all = {{}, {}, &kernel};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (errors[i] != 0) {
      refused.emplace_back(wanted[i].name, reason_of(errors[i]));
      continue;
    }
    const std::uint64_t metric = metric_of(wanted[i].name.c_str(), wanted[i].unit);
    if (metric == 0) throw std::bad_alloc();
    all.metrics.push_back(metric);
    all.events.push_back(std::move(wanted[i]));
  }
  notice_refused(refused);
  events_are_counted = !all.events.empty();
}

namespace {

void say_unreadable(std::uint32_t thread) noexcept try {
  notice(Notice::events, "COMMLENS_COUNTERS: the events of thread " + std::to_string(thread) +
                             " can no longer be read; did the program close files that it has not opened?");
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace

void note_events(Thread& thread, Key key) noexcept {
  const int saved = errno;
  const bool is_new = thread.events == nullptr || !thread.events->reader.is_open();
  ThreadEvents* const own = opened_events(thread);
  EventCount counts[EventReader::most];
  if (own == nullptr || is_new) {
    errno = saved;
    return;
  }
  const std::size_t events = chosen().metrics.size();
  std::copy(std::begin(own->last), std::end(own->last), counts);
  if (!own->reader.read(counts)) {
    own->reader.close();
    own->has_failed = true;
    say_unreadable(thread.number);
  }
  // What another thread has asked to clear is not counted: it is unknown how much of it was before.
  const bool counts_here = region_of_key(key) != uncounted_region && thread.clears == clears.load();
  for (std::size_t i = 0; i < events && counts_here && !own->has_failed; ++i) {
    EventCell& cell = *find_cell(own->cells, key, chosen().metrics[i]);
    cell.count += since(counts[i].count, own->last[i].count);
    cell.enabled += since(counts[i].enabled, own->last[i].enabled);
    cell.running += since(counts[i].running, own->last[i].running);
  }
  std::copy(std::begin(counts), std::end(counts), own->last);
  errno = saved;
}

void leave_events_to_parent() noexcept {
  for (Thread* t = first_thread(); t != nullptr; t = t->next) {
    if (t->events != nullptr) t->events->reader.close_in_child();
  }
}

void leave_events(Thread& thread) noexcept {
  if (thread.events == nullptr) return;
  if (thread.events->reader.is_open()) note_events_outside(thread);
  thread.events->reader.close();
  thread.events->has_failed = false;
}

void forget_events(Thread& thread) noexcept {
  if (thread.events == nullptr) return;
  each_cell(thread.events->cells, [](EventCell& cell) { cell.count = cell.enabled = cell.running = 0; });
  if (&thread == current_thread && thread.events->reader.is_open())
    static_cast<void>(thread.events->reader.read(thread.events->last));
}

void add_events(EventSums& sums, const EventCell& cell) {
  if ((cell.count | cell.enabled | cell.running) == 0 || region_of_key(cell.key) == uncounted_region) return;
  EventSum& sum = sums[{cell.key, cell.site}];
  sum.count += cell.count;
  sum.enabled += cell.enabled;
  sum.running += cell.running;
}

EventSums events_here() {
  EventSums sums;
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    if (t->events != nullptr) each_cell(t->events->cells, [&sums](const EventCell& cell) { add_events(sums, cell); });
  }
  return sums;
}

void write_events(WireWriter& out, const EventSums& sums) {
  out.number(sums.size());
  for (const auto& [at, sum] : sums) {
    const Key key = at.first;
    for (const std::uint64_t n : {at.second, std::uint64_t{region_of_key(key)}, std::uint64_t{comm_of_key(key)},
                                  std::uint64_t{op_of_key(key)}, sum.count, sum.enabled, sum.running})
      out.number(n);
  }
}

}  // namespace commlens
