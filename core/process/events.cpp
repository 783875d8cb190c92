// SPDX-License-Identifier: Apache-2.0
#include "core/process/events.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/base/processor.h"

namespace commlens {
namespace {

// Files of ours have high numbers: a program may expect that the next file that it opens gets the lowest, and one that
// closes what it has not opened is unlikely to get such a number for a file of its own.  Returns a number below 0 if
// all high numbers are taken: the rest is the program's.
int moved_up(int file) noexcept {
  constexpr int high = 512, less = 64;
  int moved = fcntl(file, F_DUPFD_CLOEXEC, high);
  if (moved < 0 && errno == EINVAL) moved = fcntl(file, F_DUPFD_CLOEXEC, less);  // the process may have fewer files
  const int result = moved < 0 ? -EMFILE : moved;
  close(file);
  return result;
}

int open_here(perf_event_attr& attributes, int group) noexcept {
  const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
  return file < 0 ? -errno : moved_up(static_cast<int>(file));
}

long read_file(int file, void* to, std::size_t bytes) noexcept { return read(file, to, bytes); }

void close_file(int file, void* page) noexcept {
  if (page != nullptr) munmap(page, static_cast<std::size_t>(getpagesize()));
  close(file);
}

#if defined(COMMLENS_X86_64)
void* map_page(int file) noexcept {
  void* const page = mmap(nullptr, static_cast<std::size_t>(getpagesize()), PROT_READ, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : page;
}

std::uint64_t processor_counter(std::uint32_t number) noexcept {
  return static_cast<std::uint64_t>(__builtin_ia32_rdpmc(static_cast<int>(number)));
}
std::uint64_t processor_ticks() noexcept { return __builtin_ia32_rdtsc(); }
#else
// Reads the counters by system calls only: on other processors the kernel lets no process read them, or only one that
// asks for it where an administrator allows it.
void* map_page(int) noexcept { return nullptr; }
std::uint64_t processor_counter(std::uint32_t) noexcept { return 0; }
std::uint64_t processor_ticks() noexcept { return 0; }
#endif

// The state of an event in its page, at one moment.
struct PageState {
  std::uint64_t count, enabled, running;
};

// Reads an event as linux/perf_event.h describes.  Returns false if it is not in a counter of the processor right now.
bool read_page(const EventKernel& kernel, const perf_event_mmap_page& page, PageState& state) noexcept {
  std::uint32_t sequence;
  do {
    sequence = __atomic_load_n(&page.lock, __ATOMIC_ACQUIRE);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t index = __atomic_load_n(&page.index, __ATOMIC_RELAXED);
    if (index == 0 || !page.cap_user_rdpmc) return false;
    state.enabled = page.time_enabled;
    state.running = page.time_running;
    if (page.cap_user_time) {
      const std::uint64_t now = kernel.ticks(), below = (std::uint64_t{1} << page.time_shift) - 1;
      const std::uint64_t since = page.time_offset + (now >> page.time_shift) * page.time_mult +
                                  (((now & below) * page.time_mult) >> page.time_shift);
      state.enabled += since;
      state.running += since;
    }
    const unsigned unused = 64u - page.pmc_width;
    const auto counter = static_cast<std::int64_t>(kernel.counter(index - 1) << unused) >> unused;
    state.count = static_cast<std::uint64_t>(page.offset) + static_cast<std::uint64_t>(counter);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } while (__atomic_load_n(&page.lock, __ATOMIC_ACQUIRE) != sequence);
  return true;
}

}  // namespace

const EventKernel linux_events = {open_here, read_file, map_page, close_file, processor_counter, processor_ticks};

// Events of the processor are counted in user mode only: then the kernel needs no permission for it, and the counts do
// not depend on whether it gives one.  Page faults and switches occur in the kernel, or on the way to it.
int EventReader::open_event(const Event& event, int group) const noexcept {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.config1 = event.config1;
  attributes.config2 = event.config2;
  attributes.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.exclude_hv = 1;
  attributes.exclude_kernel = event.is_software ? 0 : 1;
  const int file = kernel_->open(attributes, group);
  if ((file != -EACCES && file != -EPERM) || !event.is_software || event.is_of_kernel) return file;
  attributes.exclude_kernel = 1;
  return kernel_->open(attributes, group);
}

std::vector<int> EventReader::open(const std::vector<Event>& events, const EventKernel& kernel) {
  kernel_ = &kernel;
  used_ = 0;
  std::vector<int> errors(events.size(), 0);
  for (const bool is_software : {false, true}) {
    int group = -1;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].is_software != is_software) continue;
      if (used_ == most) {
        errors[i] = ENOSPC;
        continue;
      }
      int file = open_event(events[i], group);
      const bool needs_group = file < 0 && group != -1;  // the counters of the processor may be too few for the old one
      if (needs_group) file = open_event(events[i], -1);
      if (file < 0) {
        errors[i] = -file;
        continue;
      }
      const bool is_leader = needs_group || group == -1;
      if (is_leader) group = file;
      members_[used_++] = {file, is_software ? nullptr : kernel.map(file), static_cast<std::uint32_t>(i), is_leader};
    }
  }
  return errors;
}

bool EventReader::read(EventCount* counts) const noexcept {
  const Member* const end = members_ + used_;
  bool is_done = true;
  for (const Member* first = members_; first != end;) {
    const Member* const next = std::find_if(first + 1, end, [](const Member& m) { return m.is_leader; });
    if (!read_in_user_space(first, next, counts) && !read_group(first, next, counts)) is_done = false;
    first = next;
  }
  return is_done;
}

bool EventReader::read_in_user_space(const Member* first, const Member* end, EventCount* counts) const noexcept {
  std::uint64_t values[most];
  PageState state{}, leader{};
  for (const Member* m = first; m != end; ++m) {
    if (m->page == nullptr || !read_page(*kernel_, *static_cast<const perf_event_mmap_page*>(m->page), state))
      return false;
    values[m - first] = state.count;
    if (m == first) leader = state;
  }
  for (const Member* m = first; m != end; ++m) counts[m->event] = {values[m - first], leader.enabled, leader.running};
  return true;
}

bool EventReader::read_group(const Member* first, const Member* end, EventCount* counts) const noexcept {
  struct {
    std::uint64_t members, enabled, running, counts[most];
  } group;
  const auto members = static_cast<std::size_t>(end - first), bytes = (3 + members) * sizeof(std::uint64_t);
  if (kernel_->read(first->file, &group, bytes) != static_cast<long>(bytes) || group.members != members) return false;
  for (const Member* m = first; m != end; ++m)
    counts[m->event] = {group.counts[m - first], group.enabled, group.running};
  return true;
}

void EventReader::close_in_child() noexcept {
  while (used_ != 0) kernel_->close(members_[--used_].file, nullptr);
}

void EventReader::close() noexcept {
  while (used_ != 0) {
    --used_;
    kernel_->close(members_[used_].file, members_[used_].page);
  }
}

}  // namespace commlens
