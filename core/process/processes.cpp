// SPDX-License-Identifier: Apache-2.0
#include "core/process/processes.h"

#include <cstdlib>
#include <fstream>

namespace commlens {

ProcessFacts facts_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string line;  // "17 (a name) S 16 ...": a name may contain anything, also parentheses
  std::getline(stat, line);
  const std::size_t name = line.find('('), end = line.rfind(") ");  // the state and the parent follow
  if (name == std::string::npos || end == std::string::npos || line.size() < end + 5) return {};
  return {line.substr(name + 1, end - name - 1), std::atoi(line.c_str() + end + 4)};
}

std::string argument_of(pid_t process, const std::string& option) {
  std::ifstream arguments("/proc/" + std::to_string(process) + "/cmdline");
  for (std::string argument; std::getline(arguments, argument, '\0');) {
    if (argument == option && std::getline(arguments, argument, '\0')) return argument;
  }
  return {};
}

}  // namespace commlens
