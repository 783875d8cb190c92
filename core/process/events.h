// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What the processor and the kernel count for a thread (perf_event_open(2)): hardware counters and software events.
struct perf_event_attr;  // NOLINT(readability-identifier-naming): a name of Linux

namespace commlens {

// One kind of event, by its name in COMMLENS_COUNTERS.
struct Event {
  std::string name;
  const char* unit;  // "ns", or empty for a number of events
  std::uint32_t type;
  std::uint64_t config, config1, config2;
  bool is_software;   // the kernel counts it: nothing limits how many of them are counted at a time
  bool is_of_kernel;  // occurs in the kernel only
};

// Returns the events that a list of names selects, separated by commas.  unknown: the names that are no events.
// Names that are neither ours nor raw are those of libpfm4, if it is installed.
std::vector<Event> events_of(const std::string& list, std::vector<std::string>& unknown);
// Whether libpfm4 is installed.  Opens it.
bool events_have_library() noexcept;

// A count, and for how many nanoseconds it could have been counted and was.  If a processor has too few counters, the
// kernel takes turns: `running` is then less than `enabled`.
struct EventCount {
  std::uint64_t count, enabled, running;
};

// The calls that reach the kernel and the processor.  Unit tests replace them.
struct EventKernel {
  int (*open)(perf_event_attr& attributes, int group) noexcept;  // for the calling thread; below 0: -errno
  long (*read)(int file, void* to, std::size_t bytes) noexcept;
  void* (*map)(int file) noexcept;  // the page of perf_event_mmap_page; null: cannot be mapped
  void (*close)(int file, void* page) noexcept;
  std::uint64_t (*counter)(std::uint32_t number) noexcept;  // rdpmc
  std::uint64_t (*ticks)() noexcept;                        // rdtsc
};
extern const EventKernel linux_events;

// The open events of one thread.  Those of the processor are in groups: the kernel counts all events of a group at the
// same time, so that they can be compared.  A group has as many as the processor can count.
class EventReader {
 public:
  static constexpr std::size_t most = 16;

  // Opens the events for the calling thread.  Returns for each 0, or the error number with which the kernel refused it.
  std::vector<int> open(const std::vector<Event>& events, const EventKernel& kernel);

  // Writes the counts since open(), in the order of the events; those of a refused event stay as they are.  Returns
  // false if the kernel no longer returns them.  pre: the calling thread has opened them.
  //
  // Counters of the processor are read without a system call where the kernel allows it; a group that is not being
  // counted at the moment, and software events, need one.
  bool read(EventCount* counts) const noexcept;

  void close() noexcept;
  // In a forked child: closes the files, which count the parent.  Their pages are not mapped there, and something else
  // may be.
  void close_in_child() noexcept;
  bool is_open() const noexcept { return used_ != 0; }

 private:
  struct Member {
    int file;
    void* page;           // null: only read(2)
    std::uint32_t event;  // its index
    bool is_leader;       // the first of a group
  };
  int open_event(const Event& event, int group) const noexcept;
  bool read_group(const Member* first, const Member* end, EventCount* counts) const noexcept;
  bool read_in_user_space(const Member* first, const Member* end, EventCount* counts) const noexcept;

  const EventKernel* kernel_ = nullptr;
  Member members_[most] = {};
  std::size_t used_ = 0;
};

}  // namespace commlens
