// SPDX-License-Identifier: Apache-2.0
#include "core/process/cpu_place.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "tests/unit/check.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

// A node with 2 sockets, 3 NUMA nodes and 4 core complexes: CPUs 0-1 and 8, 2-3, 4-5, 6-7.
class Machine {
 public:
  Machine() : root_(fs::temp_directory_path() / ("cpus-" + std::to_string(getpid()))) {
    const char* const complexes[] = {"0-1,8", "2-3", "4-5", "6-7"};
    for (int cpu = 0; cpu <= 8; ++cpu) {
      const int complex = cpu == 8 ? 0 : cpu / 2;
      const std::string own = "cpu/cpu" + std::to_string(cpu);
      write(own + "/topology/physical_package_id", complex < 2 ? "0" : "1");
      write(own + "/cache/index3/shared_cpu_list", complexes[complex]);
    }
    write("node/node0/cpulist", "0-3,8");
    write("node/node1/cpulist", "4-5");
    write("node/node7/cpulist", "6-7");
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  CpuPlace place(std::initializer_list<int> cpus) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    return place_of(set, root_.string());
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << "\n";
  }
  fs::path root_;
};

void check_place(const CpuPlace& found, int socket, int numa, int complex) {
  CHECK_EQ(found.socket, socket);
  CHECK_EQ(found.numa, numa);
  CHECK_EQ(found.complex, complex);
}

}  // namespace

TEST(a_process_is_where_all_its_cpus_are) {
  const Machine machine;
  check_place(machine.place({8}), 0, 0, 0);
  check_place(machine.place({0, 1, 8}), 0, 0, 0);
  check_place(machine.place({5}), 1, 1, 4);
  check_place(machine.place({7, 6}), 1, 7, 6);
  check_place(machine.place({0, 2}), 0, 0, -1);
  check_place(machine.place({4, 6}), 1, -1, -1);
  check_place(machine.place({0, 1, 2, 3, 4, 5, 6, 7, 8}), -1, -1, -1);
}

TEST(without_files_a_place_is_unknown) {
  const Machine machine;
  check_place(machine.place({}), -1, -1, -1);
  check_place(machine.place({9}), -1, -1, -1);
  check_place(machine.place({0, 9}), -1, -1, -1);
  check_place(machine.place({9, 0}), -1, -1, -1);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  check_place(place_of(set, "/nowhere"), -1, -1, -1);
}

}  // namespace commlens
