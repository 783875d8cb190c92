// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/arena/arena.h"

namespace commlens::arena {
namespace {

// Returns the first line of a file, or nothing.
std::string first_line(const char* path) {
  char text[1024] = "";
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return {};
  if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
  std::fclose(file);
  return text;
}

void read_boot(std::uint64_t (&boot)[2]) {
  // 8-4-4-4-12 hexadecimal digits
  std::string digits;
  for (const char c : first_line("/proc/sys/kernel/random/boot_id")) {
    if (c != '-' && c != '\n') digits += c;
  }
  if (digits.size() != 32) return;
  boot[0] = std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16);
  boot[1] = std::strtoull(digits.substr(16).c_str(), nullptr, 16);
}

}  // namespace

Process process_facts(std::int64_t pid) {
  Process facts{};
  facts.pid = pid;
  read_boot(facts.boot);
  const std::string line = first_line(("/proc/" + std::to_string(pid) + "/stat").c_str());
  // "17 (a name) S 16 ...": a name may hold anything, also parentheses; the start is the 20th field behind it.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return facts;
  // One that nobody has waited for yet is gone, too.
  if (line.compare(name_end, 3, ") Z") == 0 || line.compare(name_end, 3, ") X") == 0) return facts;
  const char* at = line.c_str() + name_end;
  for (int field = 0; field < 20 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  if (at != nullptr) facts.start_time = std::strtoull(at, nullptr, 10);
  return facts;
}

Process this_process() { return process_facts(getpid()); }

Liveness liveness_of(const Process& process) {
  const Process now = process_facts(process.pid);
  const bool is_there = now.start_time != 0 && now.start_time == process.start_time && now.boot[0] == process.boot[0] &&
                        now.boot[1] == process.boot[1];
  return is_there ? Liveness::running : Liveness::gone;
}

const char* name_of(Liveness liveness) {
  switch (liveness) {
    case Liveness::running: return "running";
    case Liveness::gone: return "gone";
    case Liveness::unknown: break;
  }
  return "unknown";
}

}  // namespace commlens::arena
