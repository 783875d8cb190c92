// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "core/process/events.h"

// A kernel and a processor that count what a test says.  The processor has `counters` counters; a group that needs more
// is refused, and of several groups only one is counted at a time, as test() chooses.
namespace commlens::simulated {

struct File {
  std::uint64_t config, config1;
  std::uint32_t type;
  int leader;
  std::uint64_t count;
  bool exclude_kernel;
};

struct State {
  std::size_t counters = 4;
  bool maps_pages = false;
  bool reads = true;
  std::map<std::uint64_t, int> refused;           // error by type << 32 | config
  std::vector<File> files;                        // by number - 100
  std::map<int, std::uint64_t> enabled, running;  // by leader
  std::map<int, perf_event_mmap_page> pages;      // by file
  std::map<std::uint32_t, std::uint64_t> registers;
  int system_calls = 0, closed = 0;
};
inline State state;

inline int open(perf_event_attr& attributes, int group) noexcept {
  const auto refused = state.refused.find(std::uint64_t{attributes.type} << 32 | attributes.config);
  if (refused != state.refused.end() && (refused->second != -EACCES || !attributes.exclude_kernel))
    return -std::abs(refused->second);
  const int file = 100 + static_cast<int>(state.files.size()), leader = group < 0 ? file : group;
  const auto members =
      std::count_if(state.files.begin(), state.files.end(), [leader](const File& f) { return f.leader == leader; });
  if (attributes.type != PERF_TYPE_SOFTWARE && static_cast<std::size_t>(members) == state.counters) return -EINVAL;
  state.files.push_back(
      {attributes.config, attributes.config1, attributes.type, leader, 0, attributes.exclude_kernel != 0});
  return file;
}

inline long read(int file, void* to, std::size_t bytes) noexcept {
  ++state.system_calls;
  std::vector<std::uint64_t> group{0, state.enabled[file], state.running[file]};
  for (const File& f : state.files) {
    if (f.leader == file) group.push_back(f.count);
  }
  group[0] = group.size() - 3;
  if (!state.reads || bytes < group.size() * sizeof(std::uint64_t)) return -1;
  std::memcpy(to, group.data(), group.size() * sizeof(std::uint64_t));
  return static_cast<long>(group.size() * sizeof(std::uint64_t));
}

inline void* map(int file) noexcept { return state.maps_pages ? &state.pages[file] : nullptr; }
inline void close(int, void*) noexcept { ++state.closed; }
inline std::uint64_t counter(std::uint32_t number) noexcept { return state.registers[number]; }
inline std::uint64_t ticks() noexcept { return 1000; }

inline constexpr EventKernel kernel = {open, read, map, close, counter, ticks};

// Lets `ns` pass, in which the group of `leader` is counted for `running`, and its events grow by `count` each.
inline void pass(int leader, std::uint64_t ns, std::uint64_t running, std::uint64_t count) {
  state.enabled[leader] += ns;
  state.running[leader] += running;
  for (File& f : state.files) {
    if (f.leader == leader) f.count += count;
  }
}

}  // namespace commlens::simulated
