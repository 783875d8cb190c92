// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/arena/arena.h"

namespace commlens::arena {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File opened(const std::string& path) { return {std::fopen(path.c_str(), "re"), std::fclose}; }

// Returns the first line of a file that begins with `begin`; empty: none.
std::string line_of(const std::string& path, const char* begin = "") {
  const File file = opened(path);
  char text[1024];
  while (file != nullptr && std::fgets(text, sizeof text, file.get()) != nullptr) {
    if (std::strncmp(text, begin, std::strlen(begin)) == 0) return text;
  }
  return {};
}

void read_boot(std::uint64_t (&boot)[2]) {
  // 8-4-4-4-12 hexadecimal digits
  std::string digits;
  for (const char c : line_of("/proc/sys/kernel/random/boot_id")) {
    if (c != '-' && c != '\n') digits += c;
  }
  if (digits.size() != 32) return;
  boot[0] = std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16);
  boot[1] = std::strtoull(digits.substr(16).c_str(), nullptr, 16);
}

std::uint64_t inode_of(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

// Returns the offset of a clock, in nanoseconds, from a line such as "boottime   -86400   5": seconds and nanoseconds.
std::int64_t offset_of(const char* clock) {
  const std::string line = line_of("/proc/self/timens_offsets", clock);
  if (line.empty()) return 0;
  char* end = nullptr;
  const std::int64_t seconds = std::strtoll(line.c_str() + std::strlen(clock), &end, 10);
  return seconds * 1'000'000'000 + std::strtoll(end, nullptr, 10);
}

Namespaces own_namespaces() {
  return {inode_of("/proc/self/ns/pid"), inode_of("/proc/self/ns/time"), offset_of("boottime"), offset_of("monotonic")};
}

// Which other processes this process can see.
struct View {
  Process self;
  bool is_of_own_namespace;  // /proc shows the processes of our PID namespace
  bool is_of_machine;        // /proc shows all processes: the first PID namespace, none hidden (hidepid)
};

View look() {
  View view{};
  view.self = this_process();
  char target[32] = "";
  const ssize_t n = readlink("/proc/self", target, sizeof target - 1);
  view.is_of_own_namespace = n > 0 && std::atoll(target) == view.self.pid;
  constexpr std::uint64_t first_namespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
  view.is_of_machine =
      view.is_of_own_namespace && view.self.namespaces.pid == first_namespace && access("/proc/1/stat", R_OK) == 0;
  return view;
}

// Cached: the view does not change while a process runs.  The child of a fork looks again.
const View& view() {
  static View known{};
  if (known.self.pid != getpid()) known = look();
  return known;
}

// True if a start time that we read is that of `process`, which may have read it in another time namespace.  In that
// case both values were rounded after the offset was added, so they may differ by one clock tick.
bool is_start_of(const Process& process, std::uint64_t start_time) {
  const std::int64_t own = view().self.namespaces.boottime_offset, theirs = process.namespaces.boottime_offset;
  if (own == theirs) return start_time == process.start_time;
  const std::int64_t tick = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  // Offsets come from a file and may be any numbers: unsigned arithmetic wraps.
  const auto ahead = static_cast<std::uint64_t>(own / tick) - static_cast<std::uint64_t>(theirs / tick);
  return start_time - ahead - process.start_time + 1 <= 2;
}

// A process in another PID namespace, below ours.
struct Contained {
  std::uint64_t space;  // 0: we may not read it
  std::int64_t pid;     // in its own namespace
  std::uint64_t start_time;
};

std::vector<Contained> contained_processes() {
  std::vector<Contained> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* const entry = processes == nullptr ? nullptr : readdir(processes.get())) {
    const std::int64_t pid = std::atoll(entry->d_name);
    if (pid <= 0) continue;
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::uint64_t space = inode_of(folder + "/ns/pid");
    if (space == view().self.namespaces.pid) continue;
    // "NSpid:  1234  7": its ids, from the namespace of this /proc down to its own.
    const std::string ids = line_of(folder + "/status", "NSpid:");
    const std::size_t first = ids.find('\t'), last = ids.rfind('\t');
    if (first == last) continue;
    const std::uint64_t start_time = process_facts(pid).start_time;
    if (start_time != 0) found.push_back({space, std::atoll(ids.c_str() + last), start_time});
  }
  return found;
}

// Reads /proc once for all arenas that a command examines: their processes started before the command did.
bool is_contained(const Process& process) {
  static std::int64_t read_by = 0;
  static std::vector<Contained> all;
  if (read_by != view().self.pid) all = contained_processes();
  read_by = view().self.pid;
  for (const Contained& one : all) {
    const bool may_be = one.space == process.namespaces.pid || one.space == 0;
    if (may_be && one.pid == process.pid && is_start_of(process, one.start_time)) return true;
  }
  return false;
}

// True if a process with this id exists that /proc does not show: with hidepid, /proc shows only those of our group.
bool is_hidden(std::int64_t pid) {
  if (!line_of("/proc/" + std::to_string(pid) + "/stat").empty()) return false;
  return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
}

bool is_there(const Process& process) {
  const std::uint64_t start_time = process_facts(process.pid).start_time;
  return start_time != 0 && is_start_of(process, start_time);
}

}  // namespace

Process process_facts(std::int64_t pid) {
  Process facts{};
  facts.pid = pid;
  const std::string line = line_of("/proc/" + std::to_string(pid) + "/stat");
  // "17 (a name) S 16 ...": a name may contain anything, also parentheses.  The start time is the 20th field after it.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return facts;
  // A zombie, which its parent has not waited for yet, counts as gone.
  if (line.compare(name_end, 3, ") Z") == 0 || line.compare(name_end, 3, ") X") == 0) return facts;
  const char* at = line.c_str() + name_end;
  for (int field = 0; field < 20 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  if (at != nullptr) facts.start_time = std::strtoull(at, nullptr, 10);
  return facts;
}

Process this_process() {
  Process self = process_facts(getpid());
  read_boot(self.boot);
  self.namespaces = own_namespaces();
  return self;
}

bool is_of_this_boot(const Process& process) {
  return std::memcmp(process.boot, view().self.boot, sizeof process.boot) == 0;
}

Liveness liveness_of(const Process& process, bool in_memory) {
  if (process.start_time == 0 || !view().is_of_own_namespace) return Liveness::unknown;
  const bool is_near = process.namespaces.pid == view().self.namespaces.pid;
  if (!is_near && is_contained(process)) return Liveness::running;
  if (!is_of_this_boot(process)) return in_memory ? Liveness::unknown : Liveness::gone;
  if (is_near && is_there(process)) return Liveness::running;
  if (is_near) return is_hidden(process.pid) ? Liveness::unknown : Liveness::gone;
  return view().is_of_machine ? Liveness::gone : Liveness::unknown;
}

const char* name_of(Liveness liveness) {
  switch (liveness) {
    case Liveness::running: return "running";
    case Liveness::gone: return "gone";
    case Liveness::unknown: break;
  }
  return "unknown";
}

std::int64_t clock_ahead(const Process& process) {
  const Namespaces& own = view().self.namespaces;
  if (process.namespaces.time == own.time) return 0;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(process.namespaces.monotonic_offset) -
                                   static_cast<std::uint64_t>(own.monotonic_offset));
}

}  // namespace commlens::arena
