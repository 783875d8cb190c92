// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/base/wire.h"

// Relates the clocks of several machines by what sampled collectives say.
//
// Nobody leaves a barrier, an allreduce or an alltoall before the last member has entered.  So each such call says that
// the last entry on one machine was before the first exit on another one, and the reverse.  Over the run, these bounds
// leave a corridor for the line that translates one clock into the other (profile/corridor.h).  No message is needed.
//
// The corridor is as wide as the members of the two machines wait for others.  All leave soon after the last has
// entered, so that the median of the differences between their exits narrows it: it is taken to be wrong by no more
// than twice the sum of the shortest stay of a member, which is the time of the operation, and the deviation that three
// quarters of the calls stay below; or by more if the medians of different times contradict each other.
namespace commlens {

class Profile;

inline constexpr Ns core_tolerance = 1000;  // by which the counters of two cores of one machine may differ

// How to translate the clock of a machine into that of the reference, the machine of the lowest rank.
struct ClockLine {
  Identity machine = 0;
  int rank = -1;  // the lowest one on the machine
  bool is_known = false;
  Ticks from = 0, to = 0;  // `to` by the reference was at `from` by this clock
  double slope = 1;        // ticks of the reference per tick
  double ns_per_tick = 1;  // of the reference
  double drift = 0;        // relative deviation of `slope` from that of the rates which the machines measured
  Ns error = 0;            // the translation may be wrong by this much, while calls were sampled
  Ns excess = 0;           // by how much the calls contradict a constant rate: a clock jumped or changed its rate
  std::uint64_t calls = 0;

  Ticks translated(Ticks t) const;
};

// The clock of one rank.
struct RankClock {
  Identity machine = 0;  // ranks with the same machine share a clock
  double ns_per_tick = 1;
  ClockLine line;  // of the machine, in a run on several machines
};

// When the members on one machine took part in a call.
struct MachineTimes {
  Identity machine = 0;
  Ticks last_entered = 0, first_left = 0;
};

// A sampled call that all members leave after all have entered.
struct CallTimes {
  std::uint32_t comm = 0, op = 0, bin = 0;
  std::uint64_t number = 0;
  int members = 0;
  std::uint32_t flags = 0;             // of any member, SampleFlag
  Ns shortest = ~Ns{0};                // stay of a member
  std::vector<MachineTimes> machines;  // by identity

  auto place() const { return std::make_tuple(comm, op, bin, number); }
};

struct MachineFacts {
  Identity machine = 0;
  int rank = -1;  // the lowest one there
  double ns_per_tick = 1;
  Ticks first = 0, last = 0;  // entry and exit of sampled calls
};

struct ClockFacts {
  std::vector<CallTimes> calls;        // by place()
  std::vector<MachineFacts> machines;  // by identity
};

// Returns whether the ranks of a profile are on several machines.
bool has_machines(const Profile& profile);

// Returns what the samples of a profile's ranks say about their clocks.  pre: the profile is settled.
ClockFacts clock_facts(const Profile& profile);

// Merges what another block of ranks says.
void merge_clock_facts(ClockFacts& to, const ClockFacts& more);
void write_clock_facts(WireWriter& out, const ClockFacts& facts);
ClockFacts read_clock_facts(WireReader& in);

// Returns the line of each machine, by identity; nothing if there is one machine only.  facts: of all ranks.  A machine
// that shares no call with the reference is related to it by way of others.
std::vector<ClockLine> related(const ClockFacts& facts, const Profile& profile);
void write_clock_lines(WireWriter& out, const std::vector<ClockLine>& lines);
std::vector<ClockLine> read_clock_lines(WireReader& in);

// One description of the fields for both directions (profile/codec.h).
template <class Codec, class Line>
void line_fields(Codec& codec, Line& line) {
  codec.number(line.machine);
  codec.signed_number(line.rank);
  codec.number(line.is_known);
  codec.number(line.from);
  codec.number(line.to);
  codec.real(line.slope);
  codec.real(line.ns_per_tick);
  codec.real(line.drift);
  codec.number(line.error);
  codec.number(line.excess);
  codec.number(line.calls);
}

// Gives each rank of the profile the line of its machine.
void set_lines(Profile& profile, const std::vector<ClockLine>& lines);

}  // namespace commlens
