// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/identity.h"
#include "core/base/wire.h"
#include "core/state/datatypes.h"
#include "core/state/partners.h"
#include "core/state/regions.h"
#include "core/state/registry.h"
#include "core/state/site_facts.h"

// The entries of an arena that are not counters, each written when it becomes known.  Their number is bounded: one per
// communicator, call site, module with call sites, region, metric, tag and datatype of the profile, and one for the
// job.
namespace commlens::journal {

enum class Entry : std::uint32_t {
  job = 1,  // once, when counting begins
  comm,     // a new communicator; what changes later is in its CommState
  site,     // module and offset of a call site
  region,   // a new code region
  metric,
  tag,
  module,  // a loaded object that contains a call site
  datatype,
  combination,  // of the datatypes of a call
};

// Facts of the job and of this process that are known when counting begins.
struct JobEntry {
  int rank = -1, size = 0;
  std::uint64_t launch = 0;  // the same for all processes of one launch
  Ticks started = 0;
  Ticks counted_start = 0;  // `started` in counted time
  Ticks init = 0, own_init = 0, own_call = 0;
  PartnerConstants constants{};
  std::string node, cpus;
  std::string settings;                                   // as in RankFacts
  std::string output;                                     // where the profile would be written
  std::vector<std::pair<std::string, std::string>> meta;  // keys and values of table meta
};

struct SiteEntry {
  Site site = 0;
  Site caller = 0;  // the path to its function; 0: unknown
  SiteFacts facts;
};

// The addresses of a loaded object.  The call site of a call that did not return has no entry of its own yet.
struct ModuleEntry {
  SiteFacts facts;  // offset: of `begin`
  std::uint64_t begin = 0, end = 0;
};

struct RegionEntry {
  std::uint32_t number = 0;
  RegionFacts facts;
};

struct MetricEntry {
  std::uint64_t number = 0;
  MetricFacts facts;
};

struct DatatypeEntry {
  std::uint32_t number = 0;
  DatatypeFacts facts;
};

struct CombinationEntry {
  std::uint32_t number = 0;
  Combination combination;
};

// Append an entry.  They do nothing without an arena, or without memory.
void note(const JobEntry& job) noexcept;
void note(const CommRecord& record) noexcept;
void note(const SiteEntry& site) noexcept;
void note(const ModuleEntry& module) noexcept;
void note(const RegionEntry& region) noexcept;
void note(const MetricEntry& metric) noexcept;
void note(const TagFacts& tag) noexcept;
void note(const DatatypeEntry& datatype) noexcept;
void note(const CombinationEntry& combination) noexcept;

// Read an entry that note() wrote.  They return false when it is malformed.
bool read(WireReader& in, JobEntry& job);
bool read(WireReader& in, CommRecord& record);
bool read(WireReader& in, SiteEntry& site);
bool read(WireReader& in, ModuleEntry& module);
bool read(WireReader& in, RegionEntry& region);
bool read(WireReader& in, MetricEntry& metric);
bool read(WireReader& in, TagFacts& tag);
bool read(WireReader& in, DatatypeEntry& datatype);
bool read(WireReader& in, CombinationEntry& combination);

// Head of an entry in a segment; the entry's bytes follow.
struct EntryHead {
  Entry entry;
  std::uint32_t bytes;
  Identity check;  // of type and bytes: a reader must not interpret a damaged entry
};
Identity check_of(Entry entry, const char* bytes, std::size_t size) noexcept;

}  // namespace commlens::journal
