// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cold/registry.h"
#include "core/cold/wire.h"

// What an arena holds besides counters, written when it happens.  All of it is bounded: as many entries as a profile
// has communicators and call sites.
namespace commlens::journal {

enum class Entry : std::uint32_t {
  job = 1,  // once, when counting begins
  comm,     // a communicator is known; what changes of it is in its CommState
  site,     // where a call site lies
};

// Facts of the job and of this process, as far as they are known when counting begins.
struct JobEntry {
  int rank = -1, size = 0;
  std::uint64_t launch = 0;  // the same for all processes one launcher started
  Ticks started = 0;
  Ticks init = 0, own_init = 0, own_call = 0;
  std::string node, cpus;
  std::string output;                                     // where the profile would go
  std::vector<std::pair<std::string, std::string>> meta;  // keys and values of table meta
};

struct SiteEntry {
  Site site = 0;
  std::string module, build_id;
  std::uint64_t offset = 0;
};

// Each does nothing where there is no arena, or no memory.
void note(const JobEntry& job) noexcept;
void note(const CommRecord& record) noexcept;
void note(const SiteEntry& site) noexcept;

// The same, read.  False when it is garbled.
bool read(WireReader& in, JobEntry& job);
bool read(WireReader& in, CommRecord& record);
bool read(WireReader& in, SiteEntry& site);

// An entry as it stands in a segment: its bytes follow.
struct EntryHead {
  Entry entry;
  std::uint32_t bytes;
};

}  // namespace commlens::journal
