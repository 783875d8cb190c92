// SPDX-License-Identifier: Apache-2.0
#include "core/state/regions.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <set>

#include "core/arena/arena.h"
#include "core/base/locks.h"
#include "core/base/memory.h"
#include "core/base/patterns.h"
#include "core/base/ticks.h"
#include "core/hot/handles.h"
#include "core/state/journal.h"
#include "core/state/notices.h"
#include "core/state/sites.h"
#include "core/state/threads.h"

namespace commlens {

RegionLimits region_limits{max_execution, max_iteration, 0};
std::uint64_t loop_scale = 0;

namespace {

// A region; shared by all threads.
struct Node {
  RegionFacts facts;
  std::string path;     // only kept if a pattern has a '/': the long paths of many regions take much memory
  int decided_by = -1;  // index of the pattern that decides whether it counts
  bool counts = true;
};

// Never destroyed: threads may go on while the program exits.
struct Known {
  std::deque<Node> nodes{1};
  std::map<std::pair<std::uint32_t, Identity>, std::uint32_t> by_name;  // key: parent and name
  std::uint32_t others = 0;                                             // 0: not needed yet
  std::vector<Pattern> patterns;
  bool has_path_patterns = false;
  HandleMap names;  // identity -> Name; read without the lock: programs may make the same handle again and again
  std::deque<Name> name_memory;
  const Name* any_name = nullptr;
  std::vector<MetricFacts> metrics{1};
  std::map<std::pair<std::string, std::string>, std::uint64_t> by_metric;
  std::set<TagFacts> tags;
};

constexpr const char* name_of_others = "...others";

std::mutex& mutex = locks::regions;
Known& known() {
  static auto* const all = new Known();
  return *all;
}

std::atomic<bool> counts_outside{true};

// Decides whether a region counts: the last pattern that matches it or a region around it decides.  pre: the lock is
// held.
void decide(Node& node, const Node& around) {
  const std::vector<Pattern>& patterns = known().patterns;
  node.decided_by = around.decided_by;
  for (int i = static_cast<int>(patterns.size()) - 1; i > node.decided_by; --i) {
    const std::string& pattern = patterns[static_cast<std::size_t>(i)].text;
    const bool is_path = pattern.find('/') != std::string::npos;
    if (matches(pattern.c_str(), (is_path ? node.path : node.facts.name).c_str())) node.decided_by = i;
  }
  node.counts =
      node.decided_by < 0 ? counts_outside.load() : !patterns[static_cast<std::size_t>(node.decided_by)].leaves_out;
}

// Adds a region and returns its number.  pre: the lock is held.
std::uint32_t add_node(std::uint32_t parent, RegionKind kind, std::string name) {
  Known& all = known();
  const Node& around = all.nodes[parent];
  Node node;
  node.facts = {parent, kind, std::move(name)};
  if (all.has_path_patterns) node.path = around.path.empty() ? node.facts.name : around.path + "/" + node.facts.name;
  decide(node, around);
  const auto number = static_cast<std::uint32_t>(all.nodes.size());
  journal::note(journal::RegionEntry{number, node.facts});
  all.nodes.push_back(std::move(node));
  return number;
}

std::string place_of(Site site) {
  const Module* const module = site == 0 ? nullptr : module_of_site(site);
  char text[64];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(module == nullptr ? site : site - module->base));
  if (module == nullptr) return text;
  const std::size_t slash = module->path.rfind('/');
  return module->path.substr(slash == std::string::npos ? 0 : slash + 1) + "+" + text;
}

std::string quoted(const RegionName& name) { return "\"" + std::string(name.text, name.bytes) + "\""; }
std::string name_of_region(std::uint32_t region) { return "\"" + known().nodes[region].facts.name + "\""; }

// Notes that a region was still open.  pre: the lock is held.
void not_ended(const Frame& open, const std::string& when, Site site) {
  notice(Notice::no_end, "region " + name_of_region(open.region) + ", begun at " + place_of(open.begun) +
                             ", was still open " + when + " at " + place_of(site) + ": it ends there");
}

void grow_known(Regions& regions) noexcept {
  const std::uint32_t capacity = regions.capacity == 0 ? 256 : regions.capacity * 2;
  auto* const larger = static_cast<KnownRegion*>(map_memory(capacity * sizeof(KnownRegion)));
  if (larger == nullptr) return;
  for (std::uint32_t i = 0; i < regions.capacity; ++i) {
    const KnownRegion& old = regions.known[i];
    if (old.name == 0) continue;
    std::uint32_t to = region_place(old.parent, old.name) & (capacity - 1);
    while (larger[to].name != 0) to = (to + 1) & (capacity - 1);
    larger[to] = old;
  }
  if (regions.known != nullptr) unmap_memory(regions.known, regions.capacity * sizeof(KnownRegion));
  regions.known = larger;
  regions.capacity = capacity;
}

}  // namespace

void choose_regions(const std::string& patterns, unsigned long executions, unsigned long iterations) {
  const std::lock_guard<std::mutex> lock(mutex);
  Known& all = known();
  all.patterns = patterns_in(patterns);
  all.has_path_patterns = std::any_of(all.patterns.begin(), all.patterns.end(),
                                      [](const Pattern& one) { return one.text.find('/') != std::string::npos; });
  const bool counts_all_others = only_leave_out(all.patterns);
  counts_outside.store(counts_all_others);
  all.nodes[0].counts = counts_all_others;
  region_limits.executions =
      static_cast<std::uint32_t>(std::clamp(executions, 1ul, static_cast<unsigned long>(max_execution)));
  region_limits.iterations =
      static_cast<std::uint32_t>(std::min(iterations, static_cast<unsigned long>(max_iteration)));
}

std::uint32_t region_outside() noexcept {
  return is_paused(pauses.changes.load()) || !counts_outside.load() ? uncounted_region : 0;
}

const Name* name_of(const char* text) noexcept try {
  Known& all = known();
  std::size_t bytes = strnlen(text, most_name_bytes);
  Identity identity = identity_of_name(text, bytes);
  if (const void* const found = all.names.find(identity); found != nullptr) return static_cast<const Name*>(found);
  const std::lock_guard<std::mutex> lock(mutex);
  if (const void* const found = all.names.find(identity); found != nullptr) return static_cast<const Name*>(found);
  if (all.name_memory.size() >= most_names) {  // all further names share one handle
    if (all.any_name != nullptr) return all.any_name;
    notice(Notice::names, "more than " + std::to_string(most_names) + " handles: regions of all others count as \"" +
                              name_of_others + "\"");
    text = name_of_others;
    bytes = std::strlen(text);
    identity = identity_of_name(text, bytes);
  }
  Name& name = all.name_memory.emplace_back();
  name.identity = identity;
  name.bytes = static_cast<std::uint32_t>(bytes);
  std::memcpy(name.text, text, bytes);
  if (all.name_memory.size() > most_names) all.any_name = &name;
  return all.names.put(identity, &name) ? &name : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::uint64_t metric_of(const char* name, const char* unit) noexcept try {
  const std::string its_name(name, strnlen(name, most_name_bytes)), its_unit(unit, strnlen(unit, most_name_bytes));
  const std::lock_guard<std::mutex> lock(mutex);
  Known& all = known();
  const auto found = all.by_metric.find({its_name, its_unit});
  if (found != all.by_metric.end()) return found->second;
  if (all.metrics.size() > most_metrics) return most_metrics;
  if (all.metrics.size() == most_metrics) {
    notice(Notice::metrics, "more than " + std::to_string(most_metrics - 1) +
                                " metrics: the values of all others count as \"" + name_of_others + "\"");
    all.metrics.push_back({name_of_others, "mixed"});
  } else {
    for (const MetricFacts& other : all.metrics) {
      if (other.name == its_name && !its_name.empty())
        notice(Notice::units, "metric \"" + its_name + "\" has two units, \"" + other.unit + "\" and \"" + its_unit +
                                  "\"; its values are kept apart");
    }
    all.metrics.push_back({its_name, its_unit});
    all.by_metric.emplace(std::make_pair(its_name, its_unit), all.metrics.size() - 1);
  }
  const std::uint64_t number = all.metrics.size() - 1;
  journal::note(journal::MetricEntry{number, all.metrics.back()});
  return number;
} catch (const std::bad_alloc&) {
  return 0;
}

void tag(Thread& thread, const char* name, const char* value) noexcept try {
  const Regions* const regions = thread.regions;
  TagFacts facts;
  facts.region = regions == nullptr ? 0 : regions->frames[regions->depth].region;
  facts.name.assign(name, strnlen(name, most_name_bytes));
  facts.value.assign(value, strnlen(value, most_name_bytes));
  const std::lock_guard<std::mutex> lock(mutex);
  std::set<TagFacts>& tags = known().tags;
  if (tags.size() >= most_tags && tags.count(facts) == 0) {
    notice(Notice::tags, "more than " + std::to_string(most_tags) + " tags: all others are left out, such as \"" +
                             facts.name + "\" = \"" + facts.value + "\"");
  } else if (tags.insert(facts).second) {
    journal::note(facts);
  }
} catch (const std::bad_alloc&) {
  return;
}

Regions* enter_regions(Thread& thread) noexcept {
  auto* const regions = static_cast<Regions*>(arena::allocate(arena::Kind::stack, sizeof(Regions), thread.number));
  if (regions == nullptr) return nullptr;
  new (&regions->cells) TableOf<RegionCell>;  // the rest is zero, and most of its pages are never touched
  new (&regions->metrics) TableOf<MetricCell>;
  new (&regions->loops) TableOf<LoopCell>;
  Frame& program = regions->frames[0];
  program.iteration = -1;
  program.in_region = counts_outside.load() ? 0 : uncounted_region;
  __atomic_store_n(&thread.regions, regions, __ATOMIC_RELEASE);  // a thread that pauses counting reads it
  return regions;
}

KnownRegion* meet_region(Regions& regions, const RegionName& name, bool is_loop) noexcept try {
  const std::uint32_t parent = regions.frames[regions.depth].region;
  const Identity identity = is_loop ? name.identity ^ mark_of_loop : name.identity;
  if (is_loop && loop_scale == 0) loop_scale = static_cast<std::uint64_t>(TickScale::since_start().ns(1ull << 32));
  if (regions.used * 2 >= regions.capacity) grow_known(regions);
  if (regions.used + 1 >= regions.capacity) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  Known& all = known();
  const auto found = all.by_name.find({parent, identity});
  std::uint32_t number = 0;
  if (all.others != 0 && parent == all.others) {
    number = all.others;
  } else if (found != all.by_name.end()) {
    number = found->second;
  } else if (all.nodes.size() < most_regions) {
    number = add_node(parent, is_loop ? RegionKind::loop : RegionKind::region, std::string(name.text, name.bytes));
    all.by_name.emplace(std::make_pair(parent, identity), number);
  } else {
    if (all.others == 0) {
      all.others = add_node(0, RegionKind::others, name_of_others);
      notice(Notice::others, "more than " + std::to_string(most_regions) +
                                 " different regions: all others count as one, \"" + name_of_others + "\"");
    }
    number = all.others;
  }
  // The thread's table does not store names beyond the limit: there may be a million, each used once.
  std::uint32_t at = region_place(parent, identity) & (regions.capacity - 1);
  if (number == all.others && all.others != 0) {
    KnownRegion& one = regions.others;
    one = {identity, parent, number, one.executions, all.nodes[number].counts, true, one.cell};
    return &one;
  }
  while (regions.known[at].name != 0) at = (at + 1) & (regions.capacity - 1);
  regions.known[at] = {identity, parent, number, 0, all.nodes[number].counts, false, nullptr};
  ++regions.used;
  return &regions.known[at];
} catch (const std::bad_alloc&) {
  return nullptr;
}

void too_deep(const RegionName& name, Site site) noexcept try {
  if (is_noticed(Notice::depth)) return;
  notice(Notice::depth, "regions are nested more than " + std::to_string(Regions::most_frames) + " deep, such as " +
                            quoted(name) + " at " + place_of(site) + ": deeper ones count as part of the last");
} catch (const std::bad_alloc&) {
  return;
}

namespace {

// True for the handle that all names beyond most_names share: it ends any region with such a name.
bool is_of_others(const RegionName& name) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Name* const any = known().any_name;
  return any != nullptr && name.identity == any->identity;
}

}  // namespace

std::uint32_t end_of_another(const Thread& thread, const RegionName& name, Site site) noexcept try {
  const Regions* const regions = thread.regions;
  std::uint32_t depth = regions == nullptr ? 0 : regions->depth;
  while (depth > 0 && regions->frames[depth].name != name.identity && name.identity != 0) --depth;
  if (depth == 0 && regions != nullptr && is_of_others(name)) return regions->depth;
  if (depth == 0) {
    if (is_noticed(Notice::no_begin)) return 0;
    std::string elsewhere;
    for (const Thread* t = first_thread(); t != nullptr && elsewhere.empty() && name.identity != 0; t = t->next) {
      if (t == &thread || t->regions == nullptr) continue;
      for (std::uint32_t i = t->regions->depth; i > 0; --i) {
        const Frame& frame = t->regions->frames[i];
        if (frame.name == name.identity) elsewhere = "; another thread began it at " + place_of(frame.begun);
      }
    }
    const std::string what = name.identity == 0 ? "a region" : quoted(name);
    notice(Notice::no_begin, "the end of " + what + " at " + place_of(site) + " has no begin on its thread" +
                                 elsewhere + "; it is ignored");
    return 0;
  }
  if (is_noticed(Notice::no_end)) return depth;
  const std::lock_guard<std::mutex> lock(mutex);
  not_ended(regions->frames[regions->depth], "when the enclosing " + quoted(name) + " ended", site);
  return depth;
} catch (const std::bad_alloc&) {
  return 0;
}

std::uint32_t loop_of_iteration(const Thread& thread, Site site) noexcept try {
  const Regions* const regions = thread.regions;
  std::uint32_t depth = regions == nullptr ? 0 : regions->depth;
  while (depth > 0 && !regions->frames[depth].is_loop) --depth;
  if (depth == 0) {
    if (!is_noticed(Notice::no_loop))
      notice(Notice::no_loop, "an iteration at " + place_of(site) + " is outside any loop and is ignored");
    return 0;
  }
  if (is_noticed(Notice::no_end)) return depth;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string loop = name_of_region(regions->frames[depth].region);
  not_ended(regions->frames[regions->depth], "at the next iteration of " + loop, site);
  return depth;
} catch (const std::bad_alloc&) {
  return 0;
}

CountedRegions region_names() {
  const std::lock_guard<std::mutex> lock(mutex);
  CountedRegions counted;
  counted.names.clear();
  for (const Node& node : known().nodes) counted.names.push_back(node.facts);
  counted.metrics = known().metrics;
  counted.tags.assign(known().tags.begin(), known().tags.end());
  return counted;
}

}  // namespace commlens
