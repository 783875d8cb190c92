// SPDX-License-Identifier: Apache-2.0
#include "core/profile/clocks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "core/profile/codec.h"
#include "core/profile/corridor.h"
#include "core/profile/profile.h"
#include "core/profile/waiting.h"

namespace commlens {
namespace {

// The rates of two machines differ from what each has measured by no more than this: the kernel corrects its clock by
// at most 500 ppm.
constexpr double largest_drift = 500e-6;

double difference(Ticks a, Ticks b) { return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a); }

// Damaged arenas may contain any number.
Ticks shifted(Ticks t, double by) {
  if (!(std::abs(by) < 0x1p62)) return t;
  if (by >= 0) return t + static_cast<Ticks>(by + 0.5);
  const auto back = static_cast<Ticks>(0.5 - by);
  return t > back ? t - back : 0;
}

// Returns where a machine is in a list that is sorted by identity, or where to insert it.
template <class List>
auto place_of(List& list, Identity machine) {
  return std::lower_bound(list.begin(), list.end(), machine,
                          [](const auto& one, Identity id) { return one.machine < id; });
}

void add(std::vector<MachineTimes>& list, const MachineTimes& times) {
  const auto at = place_of(list, times.machine);
  if (at == list.end() || at->machine != times.machine) {
    list.insert(at, times);
    return;
  }
  at->last_entered = std::max(at->last_entered, times.last_entered);
  at->first_left = std::min(at->first_left, times.first_left);
}

void add(std::vector<MachineFacts>& list, const MachineFacts& facts) {
  const auto at = place_of(list, facts.machine);
  if (at == list.end() || at->machine != facts.machine) {
    list.insert(at, facts);
    return;
  }
  at->first = std::min(at->first, facts.first);
  at->last = std::max(at->last, facts.last);
  if (facts.rank < at->rank) {
    at->rank = facts.rank;
    at->ns_per_tick = facts.ns_per_tick;
  }
}

void add(CallTimes& to, const CallTimes& more) {
  to.members += more.members;
  to.flags |= more.flags;
  to.shortest = std::min(to.shortest, more.shortest);
  for (const MachineTimes& times : more.machines) add(to.machines, times);
}

template <class Codec, class Call>
void call_fields(Codec& codec, Call& call) {
  codec.number(call.comm);
  codec.number(call.op);
  codec.number(call.bin);
  codec.number(call.number);
  codec.number(call.members);
  codec.number(call.flags);
  codec.number(call.shortest);
  codec.list(call.machines, 0, [&codec](auto& times) {
    codec.number(times.machine);
    codec.number(times.last_entered);
    codec.number(times.first_left);
  });
}

template <class Codec, class Facts>
void fields(Codec& codec, Facts& facts) {
  codec.list(facts.calls, 0, [&codec](auto& call) { call_fields(codec, call); });
  codec.list(facts.machines, 0, [&codec](auto& machine) {
    codec.number(machine.machine);
    codec.signed_number(machine.rank);
    codec.real(machine.ns_per_tick);
    codec.number(machine.first);
    codec.number(machine.last);
  });
}

// Relates one machine after the other to the reference, the nearest first.
class Relations {
 public:
  Relations(const ClockFacts& facts, const Profile& profile) : machines_(facts.machines) {
    for (const CallTimes& call : facts.calls) {
      if (is_useful(call, profile)) calls_.push_back(&call);
    }
    for (const MachineFacts& machine : machines_) {
      ClockLine& line = lines_.emplace_back();
      line.machine = machine.machine;
      line.rank = machine.rank;
    }
    const auto lowest = std::min_element(machines_.begin(), machines_.end(),
                                         [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (lowest == machines_.end()) return;
    reference_ = &*lowest;
    for (ClockLine& line : lines_) line.ns_per_tick = reference_->ns_per_tick;
    lines_[static_cast<std::size_t>(lowest - machines_.begin())].is_known = true;
    while (relate_neighbours()) {
    }
  }

  std::vector<ClockLine> lines() && { return std::move(lines_); }

 private:
  // When the first member left a call, by both clocks; coordinates of Said::corridor.
  struct Exit {
    Bound at;
    double shortest;  // stay of a member, ticks of the reference
  };

  // What the calls say about a machine.
  struct Said {
    Corridor corridor;  // x: ticks of the machine after `from`; y: ticks of the reference after `to`, less the nominal
    Ticks from = 0, to = 0;
    Ns error = 0;  // of the machines by way of which it is related
    std::vector<Exit> exits;
  };

  // Of several machines, and not of different calls which the members took for the same one.
  static bool is_useful(const CallTimes& call, const Profile& profile) {
    if (call.machines.size() < 2 || call.members != profile.comms[call.comm].size) return false;
    if (has_no_data(call.op, call.bin, call.flags)) return false;
    return std::all_of(call.machines.begin(), call.machines.end(),
                       [](const MachineTimes& m) { return m.last_entered <= m.first_left; });
  }

  ClockLine& line_of(Identity machine) { return *place_of(lines_, machine); }

  double nominal(const ClockLine& line) const {
    return machines_[static_cast<std::size_t>(&line - lines_.data())].ns_per_tick / reference_->ns_per_tick;
  }

  // Relates the machines that share a call with one that is related already.  Returns whether there were any.
  bool relate_neighbours() {
    std::map<Identity, Said> said;
    for (const CallTimes* const call : calls_) {
      const MachineTimes* known = nullptr;
      for (const MachineTimes& times : call->machines) {
        const ClockLine& line = line_of(times.machine);
        if (line.is_known && (known == nullptr || line.error < line_of(known->machine).error)) known = &times;
      }
      if (known == nullptr) continue;
      for (const MachineTimes& times : call->machines) {
        if (!line_of(times.machine).is_known) add_bounds(said[times.machine], times, *known, call->shortest);
      }
    }
    for (const auto& [machine, of_machine] : said) set_line(line_of(machine), of_machine);
    return !said.empty();
  }

  void add_bounds(Said& said, const MachineTimes& times, const MachineTimes& known, Ns shortest) {
    ClockLine& line = line_of(times.machine);
    const ClockLine& by = line_of(known.machine);
    if (said.corridor.lower.empty()) {
      said.from = times.last_entered;
      said.to = by.translated(known.last_entered);
    }
    const auto bound = [&](Ticks own, Ticks of_known) {
      const double x = difference(own, said.from);
      return Bound{x, difference(by.translated(of_known), said.to) - nominal(line) * x};
    };
    said.corridor.upper.push_back(bound(times.last_entered, known.first_left));
    said.corridor.lower.push_back(bound(times.first_left, known.last_entered));
    said.exits.push_back(
        {bound(times.first_left, known.first_left), static_cast<double>(shortest) / reference_->ns_per_tick});
    said.error = std::max(said.error, by.error);
    ++line.calls;
  }

  // A place that the line passes within some distance.
  struct Near {
    Bound at;
    double room;
  };

  // Returns the value that this share of some values is below.  Reorders them.
  static double quantile(std::vector<double>& values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }

  // Returns where the median of the differences between the exits is, for each of some groups of calls.
  static std::vector<Near> medians_of(std::vector<Exit> exits) {
    constexpr std::size_t fewest = 15, most_groups = 32;
    // Where processes share processors, half of the exits agree with each other more often than with the truth.
    constexpr double middle_share = 0.5, agreeing_share = 0.75;
    std::vector<Near> medians;
    std::sort(exits.begin(), exits.end(), [](const Exit& a, const Exit& b) { return a.at.x < b.at.x; });
    const std::size_t groups = std::min(most_groups, exits.size() / fewest);
    for (std::size_t i = 0; i < groups; ++i) {
      const auto begin = exits.begin() + static_cast<std::ptrdiff_t>(i * exits.size() / groups);
      const auto end = exits.begin() + static_cast<std::ptrdiff_t>((i + 1) * exits.size() / groups);
      const auto middle = begin + (end - begin) / 2;
      std::nth_element(begin, middle, end, [](const Exit& a, const Exit& b) { return a.at.y < b.at.y; });
      std::vector<double> stays, deviations;
      for (auto exit = begin; exit != end; ++exit) {
        stays.push_back(exit->shortest);
        deviations.push_back(std::abs(exit->at.y - middle->at.y));
      }
      medians.push_back({middle->at, 2 * (quantile(stays, middle_share) + quantile(deviations, agreeing_share))});
    }
    return medians;
  }

  // Returns the line through the corridor, which the exits narrow.
  static CorridorLine line_between(const Said& said, double begin, double end, double steepest) {
    constexpr int doublings = 10;
    const CorridorLine by_order = line_through(said.corridor, begin, end, steepest);
    const std::vector<Near> medians = medians_of(said.exits);
    if (by_order.excess > 0 || medians.empty()) return by_order;
    // If the exits contradict each other, they are less exact than they seem.
    for (int i = 0; i < doublings; ++i) {
      Corridor narrow = said.corridor;
      for (const Near& m : medians) {
        const double room = std::ldexp(m.room, i);
        narrow.upper.push_back({m.at.x, m.at.y + room});
        narrow.lower.push_back({m.at.x, m.at.y - room});
      }
      const CorridorLine line = line_through(std::move(narrow), begin, end, steepest);
      if (line.excess <= 0) return line;
    }
    return by_order;
  }

  void set_line(ClockLine& line, const Said& said) {
    const MachineFacts& machine = machines_[static_cast<std::size_t>(&line - lines_.data())];
    const double begin = difference(machine.first, said.from), end = difference(machine.last, said.from);
    const CorridorLine best = line_between(said, begin, std::max(end, begin + 1), largest_drift * nominal(line));
    const auto in_ns = [&](double ticks) {
      const double ns = std::ceil(ticks * reference_->ns_per_tick);
      return ns >= 0 && ns < 0x1p62 ? static_cast<Ns>(ns) : Ns{1} << 62;
    };
    line.is_known = true;
    line.slope = nominal(line) + best.slope;
    line.drift = best.slope / nominal(line);
    line.from = machine.first;
    line.to = shifted(said.to, best.at_begin + nominal(line) * begin);
    line.error = said.error + in_ns(best.error);
    line.excess = in_ns(best.excess);
  }

  const std::vector<MachineFacts>& machines_;
  const MachineFacts* reference_ = nullptr;
  std::vector<const CallTimes*> calls_;
  std::vector<ClockLine> lines_;  // of the machines, in their order
};

}  // namespace

Ticks ClockLine::translated(Ticks t) const { return shifted(to, slope * difference(t, from)); }

bool has_machines(const Profile& profile) {
  return std::any_of(profile.ranks.begin(), profile.ranks.end(),
                     [&](const Profile::Rank& r) { return r.clock.machine != profile.ranks.front().clock.machine; });
}

ClockFacts clock_facts(const Profile& profile) {
  const std::map<int, RankClock> clocks = clocks_of(profile);
  ClockFacts facts;
  for (const SampleRow* const row : in_order_of_calls(profile)) {
    const RankClock& clock = clocks.at(row->rank);
    const Ticks left = row->entered + row->spent;
    add(facts.machines, {clock.machine, row->rank, clock.ns_per_tick, row->entered, left});
    if (!is_for_all(row->op)) continue;
    CallTimes one{row->comm,
                  row->op,
                  row->bin,
                  row->number,
                  1,
                  row->flags,
                  spent_ns(*row, clock),
                  {{clock.machine, row->entered, left}}};
    if (facts.calls.empty() || facts.calls.back().place() != one.place()) {
      facts.calls.push_back(std::move(one));
    } else {
      add(facts.calls.back(), one);
    }
  }
  return facts;
}

void merge_clock_facts(ClockFacts& to, const ClockFacts& more) {
  for (const MachineFacts& machine : more.machines) add(to.machines, machine);
  merge_by_place(to.calls, more.calls, [](CallTimes& a, const CallTimes& b) { add(a, b); });
}

std::vector<ClockLine> related(const ClockFacts& facts, const Profile& profile) {
  return facts.machines.size() < 2 ? std::vector<ClockLine>() : Relations(facts, profile).lines();
}

void set_lines(Profile& profile, const std::vector<ClockLine>& lines) {
  for (Profile::Rank& rank : profile.ranks) {
    const auto at = place_of(lines, rank.clock.machine);
    if (at != lines.end() && at->machine == rank.clock.machine) rank.clock.line = *at;
  }
}

void write_clock_facts(WireWriter& out, const ClockFacts& facts) {
  Encoder encoder(out);
  fields(encoder, facts);
}

ClockFacts read_clock_facts(WireReader& in) {
  ClockFacts facts;
  Decoder decoder(in);
  fields(decoder, facts);
  return in.ok() ? facts : ClockFacts{};
}

void write_clock_lines(WireWriter& out, const std::vector<ClockLine>& lines) {
  Encoder encoder(out);
  encoder.list(lines, 0, [&encoder](const ClockLine& line) { line_fields(encoder, line); });
}

std::vector<ClockLine> read_clock_lines(WireReader& in) {
  std::vector<ClockLine> lines;
  Decoder decoder(in);
  decoder.list(lines, 0, [&decoder](ClockLine& line) { line_fields(decoder, line); });
  if (!in.ok()) lines.clear();
  return lines;
}

}  // namespace commlens
