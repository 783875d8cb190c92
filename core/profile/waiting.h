// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/profile/clocks.h"
#include "generated/procedures.h"

// Splits the time of sampled collectives into waiting for other ranks and the operation itself.
//
// In a barrier, an allreduce or an alltoall, nobody leaves before the last member has entered.  On one machine all
// processes have one clock: each member waits from its own entry until the entry of the last.  Between machines the
// clocks differ, but durations do not: the last to enter waited for nobody, so its duration is the shortest, and each
// member waited as much longer as its own duration is, as far as what relates the clocks (profile/clocks.h) allows it.
// Rooted collectives need the clocks.
namespace commlens {

class Profile;

// One sample of one rank, in the numbers of a profile.
struct SampleRow {
  std::uint32_t comm, op, bin, region;
  int rank;
  std::uint64_t number;
  Ticks entered, spent, mpi;  // as in Sample; spent: in the call
  std::uint32_t flags;
};

// Why a sampled call cannot be split.
enum class Unsplit : std::uint8_t {
  no,
  members,    // some member has no sample of it
  no_data,    // blocks without data: some members need not wait for each other
  machines,   // a rooted collective across machines, whose clocks are not known well enough
  unordered,  // somebody left before the one for whom it waits had entered
  prefix,     // prefix sums: each rank waits for others
  threads,    // messages between the same two processes that several threads send or receive
  posting,    // a send of which is not known when its receive was posted
  count
};
inline constexpr std::size_t unsplit_count = static_cast<std::size_t>(Unsplit::count);

// The two largest values of a quantity, with the rank of the largest.
struct TopTwo {
  Ticks first = 0, second = 0;
  int rank = -1;  // -1: no value

  void add(Ticks value, int of);
  void add(const TopTwo& other);
  void translate(const ClockLine& line);
};

// What the samples of one call say together.  Those of several blocks of ranks can be merged, in any order.
struct SampledCall {
  std::uint32_t comm = 0, op = 0, bin = 0;
  std::uint64_t number = 0;

  int members = 0;
  std::uint32_t flags = 0;    // of any member
  bool has_machines = false;  // of several machines
  bool is_related = false;    // all of them are related to the reference
  Ns clock_error = 0;         // the largest ClockLine::error of a member
  // The clock of the times below: that of the lowest rank; the reference if several machines are related to it.
  RankClock clock;
  int lowest = -1;
  TopTwo last;        // by time of entry
  TopTwo last_other;  // the same without the root
  Ticks first_entered = ~Ticks{0}, first_other = ~Ticks{0}, first_left = ~Ticks{0};
  Ticks root_entered = 0, root_left = 0;
  int root = -1;
  TopTwo hasty;  // by duration in ns, negated: `first` is 2^62 minus the shortest
  Ns shortest = ~Ns{0}, longest = 0;
  Ns time = 0;                // sum over the members
  Ns waiting = 0;             // the same; see split()
  std::int64_t residual = 0;  // the same, ns; see split()
  std::uint64_t calls = 0;    // number of calls of this kind that the members made, sum over them; see split()

  auto place() const { return std::make_tuple(comm, op, bin, number); }
  void add(const SampleRow& row, const RankClock& of_rank);
  void add(SampledCall other);
  // By how much the times of two members may be wrong to each other.
  Ns tolerance() const { return has_machines ? 2 * clock_error : 0; }

 private:
  bool relate();
};
using SampledCalls = std::vector<SampledCall>;  // by place()

// What one rank waited in the sampled calls of one communicator, procedure, size bin and region.
struct WaitingRow {
  std::uint32_t comm, op, bin, region;
  int rank;
  std::uint64_t samples = 0, last = 0;  // last: calls in which the others waited for this rank
  Ns time = 0, waiting = 0;
  Ns late = 0;     // sum of SampledLate::late over these calls
  Ns behind = 0;   // sum of the times from the first entry of a member to its own
  Ns between = 0;  // time from a sampled call to the next one
  Ns in_mpi = 0;   // the part of it in MPI, in part estimated: may be more than all of it
  Ns outside() const { return between > in_mpi ? between - in_mpi : 0; }
};

// The sampled calls of one communicator, procedure and size bin together.
struct SampledRow {
  std::uint32_t comm, op, bin;
  std::uint64_t samples = 0, of = 0;  // of: calls, each counted once for all its members
  std::uint64_t across = 0;           // samples whose members are on several machines
  std::uint64_t by_clock = 0;         // those of them that were split by their clocks
  Ns time = 0, waiting = 0;           // sums over the samples and their members
  Ns error = 0;                       // standard error of the waiting in all calls, and `clock` scaled to all
  Ns clock = 0;                       // by how much `waiting` may be wrong because the clocks differ
  bool has_error = false;             // false: too few samples to know
  Ns spread = 0;                      // median of SampledLate::spread
  Ns late = 0;                        // sum of SampledLate::late
};

struct UnsplitRow {
  std::uint32_t comm, op, bin;
  Unsplit reason;
  std::uint64_t calls;
};

// Who was last in a call, and by how much.
struct SampledLate {
  int rank = -1;
  Ns late = 0;    // how long others waited for it, beyond the rank before it
  Ns spread = 0;  // from the first entry to the last
};

std::map<int, RankClock> clocks_of(const Profile& profile);

// Returns the samples by call and rank, each once: the arena of a killed process may have some twice.
std::vector<const SampleRow*> in_order_of_calls(const Profile& profile);

Ns spent_ns(const SampleRow& row, const RankClock& clock);

// Returns for whom a call of this procedure waits.
Waits waits_of(std::uint32_t op);

// Returns whether nobody leaves a call of this procedure before all have entered.  MPI_Win_fence is no such procedure:
// its assertions may make it leave earlier.
bool is_for_all(std::uint32_t op);
// Returns whether members need not wait for each other, because a block is empty.  flags: of any member.
bool has_no_data(std::uint32_t op, std::uint32_t bin, std::uint32_t flags);

// Returns the calls that the ranks of a profile have sampled.  pre: the profile is settled.
SampledCalls sampled_calls(const Profile& profile);

// Merges two lists that are sorted by place().  add(a, b): adds b to a; both have the same place.
template <class Item, class Add>
void merge_by_place(std::vector<Item>& to, const std::vector<Item>& more, Add add) {
  std::vector<Item> all;
  all.reserve(std::max(to.size(), more.size()));
  auto a = to.begin();
  auto b = more.begin();
  while (a != to.end() || b != more.end()) {
    if (b == more.end() || (a != to.end() && a->place() < b->place())) {
      all.push_back(std::move(*a++));
    } else if (a == to.end() || b->place() < a->place()) {
      all.push_back(*b++);
    } else {
      add(*a, *b++);
      all.push_back(std::move(*a++));
    }
  }
  to = std::move(all);
}

// Merges the calls of another block of ranks.
void add_calls(SampledCalls& to, const SampledCalls& more);
void write_calls(WireWriter& out, const SampledCalls& calls);
SampledCalls read_sampled_calls(WireReader& in);

// Returns why a call cannot be split.  size: of its communicator; -1: unknown.
Unsplit why_unsplit(const SampledCall& call, int size);

// Returns who was last.  pre: why_unsplit() is `no`.
SampledLate late_in(const SampledCall& call);

// Splits the samples of the profile's ranks by the calls, which have the samples of all ranks: fills profile.waiting,
// and the members of SampledCall that refer to here with sums over these ranks.
//
// The time of all calls of a rank is known exactly.  Times the share of waiting in its sampled calls, it gives the
// estimated waiting of the rank.  SampledCall::residual has what is needed for the error of the sum over the ranks: by
// how much the waiting of a call deviates from these shares, scaled to all calls of each rank.
void split(Profile& profile, SampledCalls& calls);

// Adds up the calls that were split in profile.sampled, and the others in profile.unsplit.
void sum_up(Profile& profile, const SampledCalls& calls);

}  // namespace commlens
