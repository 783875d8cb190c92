// SPDX-License-Identifier: Apache-2.0
#include "core/process/cpu_place.h"

#include <cstdio>

namespace commlens {
namespace {

// Returns the number at the beginning of a file; -1: there is none.
int number_in(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return -1;
  int number = -1;
  if (std::fscanf(file, "%d", &number) != 1) number = -1;
  std::fclose(file);
  return number;
}

// Returns whether a list such as 0-3,8 contains a CPU.
bool is_in_list(const std::string& path, int cpu) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  bool is_found = false;
  for (int first = 0, last = 0; !is_found && std::fscanf(file, "%d", &first) == 1;) {
    last = first;
    int next = std::fgetc(file);
    if (next == '-') {
      if (std::fscanf(file, "%d", &last) != 1) break;
      next = std::fgetc(file);
    }
    is_found = first <= cpu && cpu <= last;
    if (next != ',') break;
  }
  std::fclose(file);
  return is_found;
}

// Returns the NUMA node of a CPU.  `likely` is tried first.
int numa_of(const std::string& root, int cpu, int likely) {
  const auto list = [&root](int node) { return root + "/node/node" + std::to_string(node) + "/cpulist"; };
  if (likely >= 0 && is_in_list(list(likely), cpu)) return likely;
  constexpr int most = 64;  // numbers of nodes may have gaps
  for (int node = 0; node < most; ++node) {
    if (is_in_list(list(node), cpu)) return node;
  }
  return -1;
}

// Keeps a number only if it is that of all CPUs so far.
void join(int& of_all, int of_one, bool is_first) { of_all = is_first || of_all == of_one ? of_one : -1; }

}  // namespace

CpuPlace place_of(const cpu_set_t& cpus, const std::string& root) {
  CpuPlace place;
  bool is_first = true;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    const std::string own = root + "/cpu/cpu" + std::to_string(cpu);
    join(place.socket, number_in(own + "/topology/physical_package_id"), is_first);
    join(place.numa, numa_of(root, cpu, place.numa), is_first);
    // The first CPU of the list names the complex: older kernels have no file `id`.
    join(place.complex, number_in(own + "/cache/index3/shared_cpu_list"), is_first);
    is_first = false;
    if (place.socket < 0 && place.numa < 0 && place.complex < 0) break;
  }
  return place;
}

}  // namespace commlens
