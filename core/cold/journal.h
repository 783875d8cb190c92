// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cold/identity.h"
#include "core/cold/regions.h"
#include "core/cold/registry.h"
#include "core/cold/site_facts.h"
#include "core/cold/wire.h"

// What an arena holds besides counters, written when it happens.  All of it is bounded: as many entries as a profile
// has communicators and call sites.
namespace commlens::journal {

enum class Entry : std::uint32_t {
  job = 1,  // once, when counting begins
  comm,     // a communicator is known; what changes of it is in its CommState
  site,     // where a call site lies
  region,   // a code region is known
  quantity,
  tag,
};

// Facts of the job and of this process, as far as they are known when counting begins.
struct JobEntry {
  int rank = -1, size = 0;
  std::uint64_t launch = 0;  // the same for all processes one launcher started
  Ticks started = 0;
  Ticks counted_start = 0;  // the same by the clock of counted time
  Ticks init = 0, own_init = 0, own_call = 0;
  std::string node, cpus;
  std::string output;                                     // where the profile would go
  std::vector<std::pair<std::string, std::string>> meta;  // keys and values of table meta
};

struct SiteEntry {
  Site site = 0;
  SiteFacts facts;
};

struct RegionEntry {
  std::uint32_t number = 0;
  RegionFacts facts;
};

struct QuantityEntry {
  std::uint64_t number = 0;
  QuantityFacts facts;
};

// Each does nothing where there is no arena, or no memory.
void note(const JobEntry& job) noexcept;
void note(const CommRecord& record) noexcept;
void note(const SiteEntry& site) noexcept;
void note(const RegionEntry& region) noexcept;
void note(const QuantityEntry& quantity) noexcept;
void note(const TagFacts& tag) noexcept;

// The same, read.  False when it is garbled.
bool read(WireReader& in, JobEntry& job);
bool read(WireReader& in, CommRecord& record);
bool read(WireReader& in, SiteEntry& site);
bool read(WireReader& in, RegionEntry& region);
bool read(WireReader& in, QuantityEntry& quantity);
bool read(WireReader& in, TagFacts& tag);

// An entry as it stands in a segment: its bytes follow.
struct EntryHead {
  Entry entry;
  std::uint32_t bytes;
  Identity check;  // of both: what a reader does with an entry must not hang on a flipped bit
};
Identity check_of(Entry entry, const char* bytes, std::size_t size) noexcept;

}  // namespace commlens::journal
