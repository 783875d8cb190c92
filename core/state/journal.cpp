// SPDX-License-Identifier: Apache-2.0
#include "core/state/journal.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "core/arena/arena.h"

namespace commlens::journal {
namespace {

constexpr std::size_t segment_bytes = 16 << 10;

std::mutex mutex;
arena::SegmentHead* segment = nullptr;  // the one that is being filled

// Appends an entry: first its bytes, then the new `filled`, which makes it visible to readers.
void append(Entry entry, const WireWriter& out) noexcept {
  if (arena::path().empty()) return;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::vector<char>& bytes = out.bytes();
  const std::size_t needed = sizeof(EntryHead) + bytes.size();
  const auto room = [] {
    return segment == nullptr ? 0 : segment->bytes - segment->filled.load(std::memory_order_relaxed);
  };
  if (room() < needed) {
    if (arena::overflowed()) return;
    void* const memory = arena::allocate(arena::Kind::journal, std::max(segment_bytes, needed));
    if (memory == nullptr || arena::overflowed()) return;
    segment = static_cast<arena::SegmentHead*>(memory) - 1;
  }
  const std::uint64_t at = segment->filled.load(std::memory_order_relaxed);
  char* const to = reinterpret_cast<char*>(segment + 1) + at;
  const EntryHead head{entry, static_cast<std::uint32_t>(bytes.size()), check_of(entry, bytes.data(), bytes.size())};
  std::memcpy(to, &head, sizeof head);
  std::copy(bytes.begin(), bytes.end(), to + sizeof head);
  segment->filled.store(at + needed, std::memory_order_release);
  arena::read_clocks();
}

template <class Write>
void append(Entry entry, Write write) noexcept try {
  WireWriter out;
  out.expect(128);
  write(out);
  append(entry, static_cast<const WireWriter&>(out));
} catch (const std::bad_alloc&) {
  return;  // the entry is missing when counters are recovered
}

}  // namespace

Identity check_of(Entry entry, const char* bytes, std::size_t size) noexcept {
  return combine(identity_of(bytes, size), static_cast<Identity>(entry));
}

void note(const JobEntry& job) noexcept {
  arena::note_rank(job.rank, job.launch);
  append(Entry::job, [&](WireWriter& out) {
    out.signed_number(job.rank);
    out.signed_number(job.size);
    out.number(job.launch);
    out.number(job.started);
    out.number(job.counted_start);
    out.number(job.init);
    out.number(job.own_init);
    out.number(job.own_call);
    const auto& [any_source, proc_null, any_tag] = job.constants;
    for (const int constant : {any_source, proc_null, any_tag}) out.signed_number(constant);
    out.text(job.node);
    out.text(job.cpus);
    out.text(job.settings);
    out.text(job.output);
    out.pairs(job.meta);
  });
}

namespace {

// Reads a number; returns false if it does not fit into an int.
bool read_int(WireReader& in, int& to) {
  const std::int64_t n = in.signed_number();
  to = static_cast<int>(n);
  return to == n;
}

}  // namespace

bool read(WireReader& in, JobEntry& job) {
  if (!read_int(in, job.rank) || !read_int(in, job.size)) return false;
  job.launch = in.number();
  job.started = in.number();
  job.counted_start = in.number();
  job.init = in.number();
  job.own_init = in.number();
  job.own_call = in.number();
  auto& [any_source, proc_null, any_tag] = job.constants;
  for (int* const constant : {&any_source, &proc_null, &any_tag}) {
    if (!read_int(in, *constant)) return false;
  }
  job.node = in.text();
  job.cpus = in.text();
  job.settings = in.text();
  job.output = in.text();
  job.meta = in.pairs();
  return in.ok();
}

void note(const CommRecord& c) noexcept {
  append(Entry::comm, [&](WireWriter& out) {
    out.number(c.view.index);
    out.number(static_cast<std::uint64_t>(c.kind));
    out.number(c.identity);
    out.number(c.parent);
    out.number(c.op);
    out.number(static_cast<unsigned char>(c.letter));
    out.number(c.site);
    out.signed_number(c.leader);
    out.signed_number(c.view.rank);
    out.signed_number(c.view.size);
    out.signed_number(c.remote_size);
    out.number(c.second_side ? 1 : 0);
    out.number(c.count);
    out.number(c.created);
    out.text(c.topology);
    out.number(c.members.size());
    for (const std::uint32_t member : c.members) out.number(member);
  });
}

bool read(WireReader& in, CommRecord& c) {
  c.view.index = static_cast<std::uint32_t>(in.number());
  c.kind = static_cast<CommKind>(in.number());
  c.identity = in.number();
  c.parent = static_cast<std::uint32_t>(in.number());
  c.op = static_cast<std::uint32_t>(in.number());
  c.letter = static_cast<char>(in.number());
  c.site = in.number();
  for (int* const n : {&c.leader, &c.view.rank, &c.view.size, &c.remote_size}) {
    if (!read_int(in, *n)) return false;
  }
  c.second_side = in.number() != 0;
  c.count = static_cast<std::uint32_t>(in.number());
  c.created = in.number();
  c.topology = in.text();
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n)
    c.members.push_back(static_cast<std::uint32_t>(in.number()));
  return in.ok() && c.kind <= CommKind::set;
}

void note(const SiteEntry& site) noexcept {
  append(Entry::site, [&](WireWriter& out) {
    out.number(site.site);
    out.number(site.caller);
    site.facts.write(out);
  });
}

bool read(WireReader& in, SiteEntry& site) {
  site.site = in.number();
  site.caller = in.number();
  site.facts = SiteFacts::read(in);
  return in.ok();
}

void note(const ModuleEntry& module) noexcept {
  append(Entry::module, [&](WireWriter& out) {
    out.number(module.begin);
    out.number(module.end);
    module.facts.write(out);
  });
}

bool read(WireReader& in, ModuleEntry& module) {
  module.begin = in.number();
  module.end = in.number();
  module.facts = SiteFacts::read(in);
  return in.ok();
}

void note(const RegionEntry& region) noexcept {
  append(Entry::region, [&](WireWriter& out) {
    out.number(region.number);
    out.number(region.facts.parent);
    out.number(static_cast<std::uint64_t>(region.facts.kind));
    out.text(region.facts.name);
  });
}

bool read(WireReader& in, RegionEntry& region) {
  region.number = static_cast<std::uint32_t>(in.number());
  region.facts.parent = static_cast<std::uint32_t>(in.number());
  region.facts.kind = static_cast<RegionKind>(in.number());
  region.facts.name = in.text();
  return in.ok() && region.facts.parent < region.number && region.facts.kind <= RegionKind::others;
}

void note(const MetricEntry& metric) noexcept {
  append(Entry::metric, [&](WireWriter& out) {
    out.number(metric.number);
    out.text(metric.facts.name);
    out.text(metric.facts.unit);
  });
}

bool read(WireReader& in, MetricEntry& metric) {
  metric.number = in.number();
  metric.facts.name = in.text();
  metric.facts.unit = in.text();
  return in.ok();
}

void note(const TagFacts& tag) noexcept {
  append(Entry::tag, [&](WireWriter& out) {
    out.number(tag.region);
    out.text(tag.name);
    out.text(tag.value);
  });
}

bool read(WireReader& in, TagFacts& tag) {
  tag.region = static_cast<std::uint32_t>(in.number());
  tag.name = in.text();
  tag.value = in.text();
  return in.ok();
}

void note(const DatatypeEntry& datatype) noexcept {
  append(Entry::datatype, [&](WireWriter& out) {
    out.number(datatype.number);
    datatype.facts.write(out);
  });
}

bool read(WireReader& in, DatatypeEntry& datatype) {
  datatype.number = static_cast<std::uint32_t>(in.number());
  datatype.facts = DatatypeFacts::read(in);
  return in.ok();
}

void note(const CombinationEntry& entry) noexcept {
  append(Entry::combination, [&](WireWriter& out) {
    const auto& [sent, received, target] = entry.combination;
    for (const std::uint32_t n : {entry.number, sent, received, target}) out.number(n);
  });
}

bool read(WireReader& in, CombinationEntry& entry) {
  auto& [sent, received, target] = entry.combination;
  for (std::uint32_t* const n : {&entry.number, &sent, &received, &target})
    *n = static_cast<std::uint32_t>(in.number());
  return in.ok();
}

}  // namespace commlens::journal
