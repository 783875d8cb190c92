// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/process/events.h"

namespace commlens {
namespace {

// The names that perf(1) uses.
const Event known_events[] = {
    {"cycles", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0, false, false},
    {"instructions", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, 0, false, false},
    {"cache-references", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 0, 0, false, false},
    {"cache-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 0, 0, false, false},
    {"branches", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, 0, false, false},
    {"branch-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, 0, false, false},
    {"bus-cycles", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, 0, 0, false, false},
    {"ref-cycles", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 0, 0, false, false},
    {"stalled-cycles-frontend", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 0, 0, false, false},
    {"stalled-cycles-backend", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 0, 0, false, false},
    {"task-clock", "ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0, true, false},
    {"page-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, true, false},
    {"minor-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, 0, true, false},
    {"major-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 0, 0, true, false},
    {"context-switches", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0, true, true},
    {"cpu-migrations", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 0, 0, true, true},
    {"alignment-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, 0, 0, true, false},
    {"emulation-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, 0, 0, true, false},
};

// A raw event: r and the number of the event in hexadecimal, as in the manual of the processor.
bool is_raw(const std::string& name, std::uint64_t& config) {
  if (name.size() < 2 || name.size() > 17 || name[0] != 'r') return false;
  if (name.find_first_not_of("0123456789abcdefABCDEF", 1) != std::string::npos) return false;
  config = std::strtoull(name.c_str() + 1, nullptr, 16);
  return true;
}

// libpfm4 knows the events of each processor by the names of its manual; PAPI takes its native events from it.  Its
// interface, as its manual pages declare it:
struct PfmEncoding {
  perf_event_attr* attributes;
  char** full_name;  // null: not wanted
  std::size_t bytes;
  int index, cpu, flags;
};
constexpr int pfm_success = 0, pfm_os_perf_event = 1, pfm_user_mode = 8;
using PfmInitialize = int();
using PfmEncode = int(const char* name, int modes, int system, void* encoding);

// Returns libpfm4's function that finds an event; null if the library is not installed.  It is opened once, and only
// if a name asks for it; it has no threads and leaves signals alone.
PfmEncode* event_finder() noexcept {
  static PfmEncode* const finder = []() noexcept -> PfmEncode* {
    void* const library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto initialize = reinterpret_cast<PfmInitialize*>(dlsym(library, "pfm_initialize"));
    const auto encode = reinterpret_cast<PfmEncode*>(dlsym(library, "pfm_get_os_event_encoding"));
    return initialize != nullptr && encode != nullptr && initialize() == pfm_success ? encode : nullptr;
  }();
  return finder;
}

bool add_named_by_library(const std::string& name, std::vector<Event>& events) {
  PfmEncode* const encode = event_finder();
  if (encode == nullptr) return false;
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  PfmEncoding encoding = {&attributes, nullptr, sizeof encoding, 0, 0, 0};
  if (encode(name.c_str(), pfm_user_mode, pfm_os_perf_event, &encoding) != pfm_success) return false;
  const bool is_software = attributes.type == PERF_TYPE_SOFTWARE || attributes.type == PERF_TYPE_TRACEPOINT;
  events.push_back({name, "", attributes.type, attributes.config, attributes.config1, attributes.config2, is_software,
                    attributes.type == PERF_TYPE_TRACEPOINT});
  return true;
}

}  // namespace

bool events_have_library() noexcept { return event_finder() != nullptr; }

std::vector<Event> events_of(const std::string& list, std::vector<std::string>& unknown) {
  std::vector<Event> events;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, end - at);
    at = end + 1;
    name.erase(0, name.find_first_not_of(" \t"));
    name.erase(name.find_last_not_of(" \t") + 1);
    const auto is_named = [&name](const Event& event) { return event.name == name; };
    if (name.empty() || std::any_of(events.begin(), events.end(), is_named)) continue;
    const auto* const known = std::find_if(std::begin(known_events), std::end(known_events), is_named);
    std::uint64_t config = 0;
    if (known != std::end(known_events)) {
      events.push_back(*known);
    } else if (is_raw(name, config)) {
      events.push_back({name, "", PERF_TYPE_RAW, config, 0, 0, false, false});
    } else if (!add_named_by_library(name, events)) {
      unknown.push_back(name);
    }
  }
  return events;
}

}  // namespace commlens
