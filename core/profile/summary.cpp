// SPDX-License-Identifier: Apache-2.0
#include "core/profile/summary.h"

#include <algorithm>

#include "core/state/sums.h"

namespace commlens {
namespace {

using Counter = Profile::Counter;

// The counters of one rank, added up over all keys of a line.
struct Sum {
  std::uint64_t calls = 0, bytes_sent = 0, bytes_received = 0;
  Ns time = 0;
};

}  // namespace

void Summary::Line::add(const Line& other) {
  comm = comm == 0 ? other.comm : std::min(comm, other.comm);
  members += other.members;
  for (const auto& [counter, spread] : other.counters) counters[counter].add(spread);
}

void Summary::add_run(const Profile::Rank& rank) {
  Line& line = lines_[About{}];
  line.members = 1;
  const RankFacts& facts = rank.facts;
  const auto add = [&](Counter counter, std::uint64_t value) { line.counters[counter].add(value, facts.rank); };
  add(Counter::init, facts.init_ns);
  add(Counter::app, facts.app_ns);
  add(Counter::mpi, rank.mpi_ns);
  if (facts.use) {
    add(Counter::cpu, facts.use->cpu);
    add(Counter::preempted, facts.use->preempted);
  }
  // With several threads, the time in MPI may exceed the elapsed time; with one, an estimate of it may.
  if (facts.app_ns >= rank.mpi_ns || facts.threads <= 1) {
    add(Counter::outside, facts.app_ns - std::min(facts.app_ns, rank.mpi_ns));
  }
  add(Counter::threads, static_cast<std::uint64_t>(facts.threads));
  add(Counter::calls, rank.calls);
  add(Counter::lost_calls, rank.lost_calls);
  add(Counter::own_init, facts.own_init_ns);
  add(Counter::own_wait, facts.own_wait_ns);
  add(Counter::own_collect, facts.own_collect_ns);
  add(Counter::own_call, facts.own_call_ns);
  add(Counter::own_calls, facts.own_call_ns * rank.calls);
  nodes_.insert(facts.node);
}

namespace {

void add_row(std::map<Counter, Spread>& counters, const Profile::Row& row, int rank) {
  const std::pair<Counter, std::uint64_t> of_row[] = {{Counter::calls, row.calls},
                                                      {Counter::time, row.time},
                                                      {Counter::bytes_sent, row.bytes_sent},
                                                      {Counter::bytes_received, row.bytes_received},
                                                      {Counter::noncontiguous, row.noncontiguous},
                                                      {Counter::untimed, row.untimed}};
  for (const auto& [counter, value] : of_row) counters[counter].add(value, rank);
  if (row.calls == row.untimed) return;
  counters[Counter::time_min].add(row.time_min, rank);
  counters[Counter::time_max].add(row.time_max, rank);
}

}  // namespace

Summary::Summary(const Profile& profile) {
  for (const Profile::Rank& rank : profile.ranks) add_run(rank);
  const std::vector<Dictionary::CommAndFamily> comms = profile.dictionary.comm_identities();
  const int rank = profile.ranks.empty() ? 0 : profile.ranks.front().facts.rank;
  for (const Dictionary::CommAndFamily& place : comms) {
    for (const About& about : {About{About::family, place.family}, About{About::comm, place.comm}}) {
      Line& line = lines_[about];
      line.comm = place.comm;
      line.members = 1;
    }
  }
  std::map<About, std::pair<Identity, Sum>> sums;
  for (const Profile::Row& row : profile.rows) {
    const auto [number, op, bin, region, site] = profile.dictionary.key_at(row.key);
    const auto& [comm, family] = comms[number];
    for (const About& about : {About{About::family, family}, About{About::family_op, family, op, bin},
                               About{About::family_site, family, op, bin, 0, site}, About{About::comm, comm},
                               About{About::comm_op, comm, op, bin}}) {
      auto& [whose, sum] = sums[about];
      whose = comm;
      add_counters(sum, row);
    }
    Line& line = lines_[{About::key, comm, op, bin, region, site}];
    line.comm = comm;
    add_row(line.counters, row, rank);
  }
  std::map<Identity, Profile::RegionRow> regions;
  for (const Profile::RegionRow& row : profile.region_rows) {
    Profile::RegionRow& sum = regions[profile.dictionary.region_at(row.within.region)];
    sum.calls += row.calls;
    sum.time += row.time;
    sum.nested += row.nested;
    sum.mpi += row.mpi;
  }
  for (const auto& [region, sum] : regions) {
    Line& line = lines_[{About::region_only, 0, 0, 0, region, 0}];
    line.counters[Counter::calls].add(sum.calls, rank);
    line.counters[Counter::time].add(sum.time, rank);
    line.counters[Counter::exclusive].add(sum.time - sum.nested, rank);
    line.counters[Counter::mpi].add(sum.mpi, rank);
    line.counters[Counter::outside].add(sum.time - std::min(sum.time, sum.mpi), rank);
  }
  oddities_ = profile.oddities;
  for (const auto& [about, entry] : sums) {
    const auto& [comm, sum] = entry;
    Line& line = lines_[about];
    line.comm = comm;
    line.counters[Counter::calls].add(sum.calls, rank);
    line.counters[Counter::time].add(sum.time, rank);
    line.counters[Counter::bytes_sent].add(sum.bytes_sent, rank);
    line.counters[Counter::bytes_received].add(sum.bytes_received, rank);
  }
}

std::vector<char> Summary::packed() const {
  WireWriter out;
  out.number(nodes_.size());
  for (const std::string& node : nodes_) out.text(node);
  out.number(lines_.size());
  for (const auto& [about, line] : lines_) {
    out.number(about.level);
    out.number(about.whose);
    for (const std::uint32_t n : {about.op, about.bin}) out.number(n);
    out.number(about.region);
    out.number(about.site);
    out.number(line.comm);
    out.number(line.members);
    out.number(line.counters.size());
    for (const auto& [counter, spread] : line.counters) {
      out.number(static_cast<std::uint64_t>(counter));
      spread.write(out);
    }
  }
  write_oddities(out, oddities_);
  return out.bytes();
}

bool Summary::add(const std::vector<char>& packed) {
  WireReader in(packed.data(), packed.size());
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) nodes_.insert(in.text());
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    About about;
    about.level = static_cast<About::Level>(in.number());
    about.whose = in.number();
    for (std::uint32_t* const field : {&about.op, &about.bin}) *field = static_cast<std::uint32_t>(in.number());
    about.region = in.number();
    about.site = in.number();
    Line line;
    line.comm = in.number();
    line.members = in.number();
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      const auto counter = static_cast<Counter>(in.number());
      line.counters.emplace(counter, Spread::read(in));
    }
    if (in.ok()) lines_[about].add(line);
  }
  read_oddities(in, oddities_);
  return in.ok();
}

const Spread* Summary::of_run(Counter counter) const {
  const auto line = lines_.find(About{});
  if (line == lines_.end()) return nullptr;
  const auto found = line->second.counters.find(counter);
  return found == line->second.counters.end() ? nullptr : &found->second;
}

// Lines are added up once more, because families have numbers only now: identities that stand for one family become one
// line.
std::vector<Profile::Line> Summary::lines(const Profile& profile) const {
  const Dictionary::Numbers numbers = profile.dictionary.numbers_in(profile);
  std::map<About, std::pair<Profile::Line, Line>> found;
  std::map<std::tuple<int, int, int, int>, int> parts;  // number of call sites that a line adds up
  const auto sums_of = [](const Profile::Line& line) {
    return std::make_tuple(line.family, line.comm, line.op, line.bin);
  };
  for (const auto& [about, line] : lines_) {
    Profile::Line result;
    About place = about;
    const std::uint32_t region = numbers.regions[profile.dictionary.region_of(about.region)];
    place.region = region;
    if (about.level == About::region_only) {
      result.region = static_cast<int>(region);
    } else if (about.level != About::run) {
      const std::uint32_t comm = numbers.comms[profile.dictionary.comm_of(line.comm)];
      const bool is_family = about.level <= About::family_site;
      const int family = profile.comms[comm].family;
      (is_family ? result.family : result.comm) = is_family ? family : static_cast<int>(comm);
      place.whose = is_family ? static_cast<Identity>(family) : comm;
    }
    const bool is_of_op = about.level == About::family_op || about.level == About::family_site ||
                          about.level == About::comm_op || about.level == About::key;
    if (is_of_op) {
      result.op = static_cast<int>(about.op);
      result.bin = static_cast<int>(about.bin);
    }
    const std::uint32_t site = numbers.sites[profile.dictionary.site_of(about.site)];
    place.site = site;
    if (about.level == About::family_site || about.level == About::key) result.site = static_cast<int>(site);
    if (about.level == About::key) {
      const Catalogue::KeyFacts key{
          static_cast<std::uint32_t>(result.comm), about.op, about.bin, region, site, 0, 0, 0, 0};
      result.key = static_cast<int>(profile.find(key));
    }
    const auto [entry, is_new] = found.try_emplace(place, result, Line{});
    entry->second.second.add(line);
    if (is_new && result.site >= 0) ++parts[sums_of(result)];
  }
  std::vector<Profile::Line> lines;
  for (auto& [place, entry] : found) {
    auto& [line, sum] = entry;
    const bool has_members = line.op < 0 && line.region < 0;
    if (line.op >= 0 && line.site < 0 && parts[sums_of(line)] == 1) continue;  // equals its only part
    // Skips "no communicator" if no call was counted under it.
    if (line.comm == 0 && has_members && sum.counters.empty()) continue;
    if (has_members) line.members = static_cast<std::int64_t>(sum.members);
    line.counters = std::move(sum.counters);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace commlens
