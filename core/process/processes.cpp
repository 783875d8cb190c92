// SPDX-License-Identifier: Apache-2.0
#include "core/process/processes.h"

#include <cstdio>
#include <cstdlib>

namespace commlens {
namespace {

// Returns what a file of /proc about a process has; empty: it cannot be read.  The streams of C++ would cost each
// process of a job 400 KB of memory, for the tables of their locales.
std::string text_of(pid_t process, const char* name) {
  std::string text;
  std::FILE* const file = std::fopen(("/proc/" + std::to_string(process) + name).c_str(), "re");
  if (file == nullptr) return text;
  char part[512];
  std::size_t n;
  do {
    n = std::fread(part, 1, sizeof part, file);
    text.append(part, n);
  } while (n == sizeof part);
  std::fclose(file);
  return text;
}

}  // namespace

ProcessFacts facts_of(pid_t process) {
  // "17 (a name) S 16 ...": a name may contain anything, also parentheses and ends of lines.
  const std::string stat = text_of(process, "/stat");
  const std::size_t name = stat.find('('), end = stat.rfind(") ");  // the state and the parent follow
  if (name == std::string::npos || end == std::string::npos || stat.size() < end + 5) return {};
  return {stat.substr(name + 1, end - name - 1), std::atoi(stat.c_str() + end + 4)};
}

std::string argument_of(pid_t process, const std::string& option) {
  const std::string arguments = text_of(process, "/cmdline");  // each ends with a 0
  bool is_next = false;
  for (std::size_t at = 0; at < arguments.size();) {
    const std::string argument = arguments.c_str() + at;
    if (is_next) return argument;
    is_next = argument == option;
    at += argument.size() + 1;
  }
  return {};
}

}  // namespace commlens
