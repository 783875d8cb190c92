// SPDX-License-Identifier: Apache-2.0
#include "core/history/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/base/ticks.h"

namespace commlens::history {
namespace {

constexpr Ns second = 1'000'000'000;

Ns time_of_day() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<Ns>(t.tv_sec) * second + static_cast<Ns>(t.tv_nsec);
}

std::size_t read_at(int file, char* to, std::size_t bytes, std::uint64_t at) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = pread(file, to + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// A header in memory of its own.
struct HeaderCopy {
  alignas(arena::Header) char bytes[sizeof(arena::Header)];
  bool is_whole;
  explicit HeaderCopy(int file) : is_whole(read_at(file, bytes, sizeof bytes, 0) == sizeof bytes) {}
  const arena::Header& header() const { return *reinterpret_cast<const arena::Header*>(bytes); }
};

bool is_own(int file) {
  struct stat facts;
  return fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether a process of this PID namespace runs.  Without its folder in /proc, a signal tells.
bool is_running(const arena::Process& process) {
  const arena::Liveness liveness = arena::liveness_of(process, true);
  if (liveness != arena::Liveness::unknown) return liveness == arena::Liveness::running;
  return kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
}

bool is_finalized(const arena::Header& header) {
  return header.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(arena::State::finalized);
}

bool is_arena(const std::string& name) {
  const std::string prefix = arena::file_prefix(), end = ".arena";
  return name.compare(0, prefix.size(), prefix) == 0 && name.size() > end.size() &&
         name.compare(name.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Recorder::RecordedArena::~RecordedArena() { close(file); }

void Recorder::look() {
  for (const std::string& place : places_) look_in(place);
}

void Recorder::look_in(const std::string& place) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(place.c_str()), closedir);
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (!is_arena(name) || known_.count(name) != 0) continue;
    if (add(dirfd(folder.get()), name)) known_.insert(name);
  }
}

// Opens an arena if it is of this launch.  Returns false if that is not known yet, because its process is still in
// MPI_Init.
bool Recorder::add(int folder, const std::string& name) {
  const int file = openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ELOOP || errno == EACCES;  // others may pass
  auto one = std::make_unique<RecordedArena>(file);
  const HeaderCopy copy(file);
  const arena::Header& header = copy.header();
  if (!is_own(file)) return true;
  if (!copy.is_whole || std::memcmp(header.magic, arena::magic, sizeof header.magic) != 0) return false;
  // Its process is still writing the rest of the header.
  if (header.used.load(std::memory_order_acquire) < arena::header_bytes) return false;
  if (header.version != arena::version || header.layout != arena::layout()) return true;
  if (header.process.namespaces.pid != self_.namespaces.pid) return true;
  if (!arena::is_of_this_boot(header.process)) return true;  // of another node, in a folder that all share
  // The rank is stored after the launch.
  if (header.rank.load(std::memory_order_acquire) < 0) return !is_running(header.process);
  if (header.launch.load(std::memory_order_relaxed) != launch_) return true;
  one->process = header.process;
  one->clock_is_tsc = header.clock_is_tsc != 0;
  all_.push_back(std::move(one));
  return true;
}

bool Recorder::is_any_counting() {
  return std::any_of(all_.begin(), all_.end(), [](const std::unique_ptr<RecordedArena>& one) {
    if (one == nullptr || !is_running(one->process)) return false;
    const HeaderCopy copy(one->file);
    return copy.is_whole && !is_finalized(copy.header());
  });
}

Snapshot Recorder::take(Ns planned) {
  Snapshot snapshot;
  snapshot.time = planned;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i] == nullptr) continue;
    Part part;
    part.process = static_cast<std::uint32_t>(i);
    part.is_running = is_running(all_[i]->process);  // before it is read: afterwards nothing is counted any more
    part.time = time_of_day();
    DifferenceWriter difference;
    const bool counts_on = read(*all_[i], part.is_running, difference) && part.is_running;
    part.difference = difference.take();
    snapshot.parts.push_back(std::move(part));
    if (!counts_on) all_[i].reset();
  }
  return snapshot;
}

// The process stores the time in its header now and then only.  The snapshot gets the time at which it was taken.
bool Recorder::read(RecordedArena& one, bool is_running, DifferenceWriter& difference) {
  constexpr std::size_t block = 256 << 10;
  alignas(arena::Header) static char bytes[block];
  std::uint64_t used = 0;
  bool counts_on = true;
  for (std::uint64_t at = 0; at == 0 || at < used; at += block) {
    const std::size_t wanted = at == 0 ? block : std::min<std::uint64_t>(block, used - at);
    const std::size_t n = read_at(one.file, bytes, wanted, at) / line_bytes * line_bytes;
    if (n < arena::header_bytes && at == 0) return false;
    if (at == 0) {
      auto* const header = reinterpret_cast<arena::Header*>(bytes);
      used = std::min(header->used.load(std::memory_order_relaxed), arena::most_bytes);
      counts_on = !is_finalized(*header);  // before the rest is read: it is the last state then
      if (is_running && counts_on) {
        clock_is_tsc = one.clock_is_tsc;
        one.last = reading();
        const auto ahead = static_cast<std::uint64_t>(arena::clock_ahead(one.process));
        one.last.ns += ahead;
        if (!clock_is_tsc) one.last.ticks += ahead;
      }
      if (one.last.ticks > header->last.ticks) header->last = one.last;
    }
    const std::uint64_t end = std::min(at + n, std::max<std::uint64_t>(used, arena::header_bytes));
    if (!one.image.grow(end)) return counts_on;
    one.image.replace(at / line_bytes, bytes, end - at, difference);
    if (n < wanted) break;
  }
  return counts_on;
}

namespace {

// Closes the descriptors from `first` to `last`.
void close_range_of(unsigned first, unsigned last) {
  if (first > last) return;
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
#endif
  // Before Linux 5.9.
  if (const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir("/proc/self/fd"), closedir); files != nullptr) {
    while (const dirent* const entry = readdir(files.get())) {
      const int file = std::atoi(entry->d_name);
      const auto number = static_cast<unsigned>(file);
      if (number >= first && number <= last && file != dirfd(files.get())) close(file);
    }
    return;
  }
  // Containers have limits of 2^30, which would take minutes.  Few programs open more than 2^16 files, and one that is
  // left open only stays open.
  constexpr unsigned most = 1u << 16;
  for (unsigned file = first; file <= last && file < most; ++file) close(static_cast<int>(file));
}

// Closes what the application has left open, all but the first three and what the plan names.
void close_others(const Plan& plan) {
  unsigned first = STDERR_FILENO + 1;
  for (const int kept : {std::min(plan.status, plan.lock), std::max(plan.status, plan.lock)}) {
    if (kept <= STDERR_FILENO) continue;
    close_range_of(first, static_cast<unsigned>(kept) - 1);
    first = static_cast<unsigned>(kept) + 1;
  }
  close_range_of(first, ~0u);
}

void write_text(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t n = write(file, text.data(), text.size());
  static_cast<void>(n);  // it is a wish
  close(file);
}

// Lets the processes of the job go first, whatever policy and group this process has from them.
void give_way() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_OTHER, &none);
  constexpr int most_polite = 19;
  setpriority(PRIO_PROCESS, 0, most_polite);
  // A session has a group of its own, among which nice values count for nothing.
  write_text("/proc/self/autogroup", "19");
  write_text("/proc/self/oom_score_adj", "1000");  // rather this one than a rank
}

// Makes this process one that nobody waits for: no terminal, no pipe, no signal that a launcher sends to its group, no
// processor of its own.
void detach(const Plan& plan) {
  setsid();
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  close_others(plan);
  // The pipes of the launcher, which waits for their ends.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file = 0; file <= STDERR_FILENO; ++file) {
    if (nothing < 0) {
      close(file);
    } else {
      dup2(nothing, file);
    }
  }
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);  // the kernel leaves out those that this job may not use
  sched_setaffinity(0, sizeof all, &all);
  // A descriptor for each process; and what the program may write to a file is no limit for the history.
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    rlimit limit;
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
}

// Tells the process that started this one: an empty text, or what failed.
void report(int status, const std::string& error) {
  if (status < 0) return;
  const std::string text = "started" + (error.empty() ? "" : ": " + error + "; COMMLENS_FLUSH_EVERY tries again");
  const ssize_t n = write(status, text.c_str(), text.size());
  static_cast<void>(n);  // nobody waits any more
  close(status);
}

// Waits until `due`.  Returns false at once if no process counts any more.
bool wait_until(Ns due, Recorder& recorder) {
  constexpr Ns patience = second / 4;
  while (true) {
    recorder.look();  // for one that begins and ends between two snapshots
    if (!recorder.is_any_counting()) return false;
    const Ns now = time_of_day();
    if (now >= due) return true;
    const Ns rest = std::min(due - now, patience);
    const timespec pause{0, static_cast<long>(rest)};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

int record(const Plan& plan) {
  if (plan.status >= 0) detach(plan);
  HistoryWriter writer(plan.most);
  const std::string name = plan.node + "-" + std::to_string(time_of_day()) + file_suffix;
  std::string failure;
  if (!writer.create(plan.folder, name)) failure = folder_error(errno);
  if (plan.status >= 0 && chdir("/") != 0) return 1;  // keeps no file system in use
  Recorder recorder(plan.launch, plan.places);
  // Of a full file system, perhaps: what was not written is part of the next snapshot.
  Snapshot unwritten;
  const auto add = [&](Ns planned) {
    recorder.look();
    Snapshot snapshot = recorder.take(planned);
    if (!unwritten.parts.empty()) snapshot = sum_of(unwritten, snapshot);
    if (snapshot.parts.empty()) return true;
    const bool is_written = writer.add(snapshot);
    unwritten = is_written ? Snapshot{} : std::move(snapshot);
    return is_written;
  };
  // The first one shows whether there is room, while somebody can still be told.
  if (!add(time_of_day()) && failure.empty()) failure = std::strerror(errno);
  report(plan.status, failure);
  if (plan.status >= 0) give_way();  // not before: MPI_Init has waited for the report
  for (bool is_over = false; !is_over;) {
    // All nodes take their snapshots at the same times, without talking about it.
    const Ns interval = plan.seconds * second, due = (time_of_day() / interval + 1) * interval;
    is_over = !wait_until(due, recorder);
    add(is_over ? time_of_day() : due);
    is_over = is_over && !recorder.is_any_counting();  // one may have come meanwhile
  }
  return unwritten.parts.empty() ? 0 : 1;
}

}  // namespace commlens::history
