// SPDX-License-Identifier: Apache-2.0
#include "core/profile/waiting.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "core/profile/codec.h"
#include "core/profile/profile.h"
#include "core/state/samples.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

constexpr Ticks far = Ticks{1} << 62;

Ticks later_by(Ticks end, Ticks begin) { return end > begin ? end - begin : 0; }

Ns in_ns(Ticks ticks, const RankClock& clock) {
  return static_cast<Ns>(static_cast<double>(std::min(ticks, far)) * clock.ns_per_tick + 0.5);
}

// Returns for whom the members of a call wait.  pre: the samples of all of them are in it
Waits waits_in(const SampledCall& call) {
  return (call.flags & SampleFlag::barrier) != 0 ? Waits::last : waits_of(call.op);
}

// Returns whether only related clocks tell who waits on several machines: not all wait for the last, or maybe not, as
// in a fence.
bool needs_clocks(const SampledCall& call) { return waits_in(call) != Waits::last || call.op == op::MPI_Win_fence; }

// Returns whether a call is split by when its members entered, and not by how long it took them.
bool is_by_clock(const SampledCall& call) { return !call.has_machines || (call.is_related && needs_clocks(call)); }

// Returns when a member entered, by the clock of the call.
Ticks entry_in(const SampledCall& call, const SampleRow& row, const RankClock& clock) {
  return call.has_machines && call.is_related ? clock.line.translated(row.entered) : row.entered;
}

// Returns what is closest to `by_stay` within the tolerance of what the clocks say.
Ns within_tolerance(const SampledCall& call, Ns by_stay, Ns by_clock) {
  if (!call.is_related) return by_stay;
  const Ns tolerance = call.tolerance();
  return std::clamp(by_stay, by_clock - std::min(by_clock, tolerance), by_clock + tolerance);
}

// Returns how long a member waited in a call that can be split.
Ns waited(const SampledCall& call, const SampleRow& row, const RankClock& clock) {
  const Ns spent = spent_ns(row, clock);
  const Ticks entered = entry_in(call, row, clock);
  const auto until = [&](Ticks entry) { return std::min(spent, in_ns(later_by(entry, entered), call.clock)); };
  switch (waits_in(call)) {
    case Waits::last:
      if (is_by_clock(call)) return until(call.last.first);
      return within_tolerance(call, later_by(spent, call.shortest), until(call.last.first));
    case Waits::root: return row.rank == call.root ? 0 : until(call.root_entered);
    case Waits::others: return row.rank == call.root ? until(call.last_other.first) : 0;
    case Waits::lower:
    case Waits::sources:
    case Waits::none: break;
  }
  return 0;
}

template <class Codec, class Top>
void top_fields(Codec& codec, Top& top) {
  codec.number(top.first);
  codec.number(top.second);
  codec.signed_number(top.rank);
}

template <class Codec, class Call>
void fields(Codec& codec, Call& call) {
  codec.number(call.comm);
  codec.number(call.op);
  codec.number(call.bin);
  codec.number(call.number);
  codec.number(call.members);
  codec.number(call.flags);
  codec.number(call.has_machines);
  codec.number(call.is_related);
  codec.number(call.clock_error);
  codec.number(call.clock.machine);
  codec.real(call.clock.ns_per_tick);
  line_fields(codec, call.clock.line);
  codec.signed_number(call.lowest);
  top_fields(codec, call.last);
  top_fields(codec, call.last_other);
  top_fields(codec, call.hasty);
  codec.number(call.first_entered);
  codec.number(call.first_other);
  codec.number(call.first_left);
  codec.number(call.root_entered);
  codec.number(call.root_left);
  codec.signed_number(call.root);
  codec.number(call.shortest);
  codec.number(call.longest);
  codec.number(call.time);
}

}  // namespace

Waits waits_of(std::uint32_t op) { return op < std::size(op_facts) ? op_facts[op].waits : Waits::none; }

void TopTwo::add(Ticks value, int of) {
  if (rank < 0 || value > first || (value == first && of < rank)) {
    second = rank < 0 ? 0 : first;
    first = value;
    rank = of;
  } else {
    second = std::max(second, value);
  }
}

void TopTwo::add(const TopTwo& other) {
  if (other.rank < 0) return;
  const Ticks runner_up = other.second;
  add(other.first, other.rank);
  second = std::max(second, runner_up);
}

void TopTwo::translate(const ClockLine& line) {
  if (rank < 0) return;
  first = line.translated(first);
  if (second != 0) second = line.translated(second);
}

// Translates the times into those of the reference.  Returns false if the machine is not related to it.
bool SampledCall::relate() {
  if (has_machines) return is_related;
  const ClockLine line = clock.line;
  if (!line.is_known) return false;
  last.translate(line);
  last_other.translate(line);
  for (Ticks* const t : {&first_entered, &first_other, &first_left, &root_entered, &root_left}) {
    if (*t != 0 && *t != ~Ticks{0}) *t = line.translated(*t);
  }
  clock.ns_per_tick = line.ns_per_tick;
  return true;
}

void SampledCall::add(const SampleRow& row, const RankClock& of_rank) {
  SampledCall one;
  one.members = 1;
  one.flags = row.flags;
  one.clock = of_rank;
  one.clock_error = of_rank.line.error;
  one.lowest = row.rank;
  one.last.add(row.entered, row.rank);
  one.first_entered = row.entered;
  one.first_left = row.entered + row.spent;
  if ((row.flags & SampleFlag::root) != 0) {
    one.root = row.rank;
    one.root_entered = row.entered;
    one.root_left = row.entered + row.spent;
  } else {
    one.last_other.add(row.entered, row.rank);
    one.first_other = row.entered;
  }
  one.time = one.shortest = one.longest = spent_ns(row, of_rank);
  one.hasty.add(far - std::min(one.time, far), row.rank);
  add(one);
}

void SampledCall::add(SampledCall other) {
  if (members == 0) {
    const auto [c, o, b, n] = place();
    *this = other;
    comm = c;
    op = o;
    bin = b;
    number = n;
    return;
  }
  members += other.members;
  flags |= other.flags;
  if (has_machines || other.has_machines || clock.machine != other.clock.machine) {
    const bool can_relate = clock.line.is_known && other.clock.line.is_known;
    is_related = can_relate && relate() && other.relate();
    has_machines = true;
  }
  clock_error = std::max(clock_error, other.clock_error);
  if (other.lowest < lowest) {
    lowest = other.lowest;
    clock = other.clock;
  }
  last.add(other.last);
  last_other.add(other.last_other);
  first_entered = std::min(first_entered, other.first_entered);
  first_other = std::min(first_other, other.first_other);
  first_left = std::min(first_left, other.first_left);
  if (root < 0) {
    root = other.root;
    root_entered = other.root_entered;
    root_left = other.root_left;
  }
  hasty.add(other.hasty);
  shortest = std::min(shortest, other.shortest);
  longest = std::max(longest, other.longest);
  time += other.time;
}

std::map<int, RankClock> clocks_of(const Profile& profile) {
  std::map<int, RankClock> clocks;
  for (const Profile::Rank& r : profile.ranks) clocks[r.facts.rank] = r.clock;
  return clocks;
}

std::vector<const SampleRow*> in_order_of_calls(const Profile& profile) {
  std::vector<const SampleRow*> rows;
  rows.reserve(profile.samples.size());
  for (const SampleRow& row : profile.samples) rows.push_back(&row);
  const auto place = [](const SampleRow& r) { return std::make_tuple(r.comm, r.op, r.bin, r.number, r.rank); };
  std::sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return place(*a) < place(*b); });
  const auto is_same = [&](const auto* a, const auto* b) { return place(*a) == place(*b); };
  rows.erase(std::unique(rows.begin(), rows.end(), is_same), rows.end());
  return rows;
}

Ns spent_ns(const SampleRow& row, const RankClock& clock) { return in_ns(row.spent, clock); }

bool is_for_all(std::uint32_t op) { return waits_of(op) == Waits::last && op != op::MPI_Win_fence; }

bool has_no_data(std::uint32_t op, std::uint32_t bin, std::uint32_t flags) {
  constexpr std::uint32_t without_size[] = {op::MPI_Barrier, op::MPI_Ibarrier, op::MPI_Barrier_init, op::MPI_Win_fence};
  const bool has_size = std::find(std::begin(without_size), std::end(without_size), op) == std::end(without_size);
  const bool is_empty = (bin == 0 && has_size) || (flags & SampleFlag::empty) != 0;
  return is_empty && (flags & SampleFlag::barrier) == 0;
}

SampledCalls sampled_calls(const Profile& profile) {
  const std::map<int, RankClock> clocks = clocks_of(profile);
  const std::vector<const SampleRow*> rows = in_order_of_calls(profile);
  const auto place = [](const SampleRow& r) { return std::make_tuple(r.comm, r.op, r.bin, r.number); };
  // Reserved at once: a vector that grows by doubling would need the most memory of a small job's MPI_Finalize.
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) count += i == 0 || place(*rows[i]) != place(*rows[i - 1]) ? 1 : 0;
  SampledCalls calls;
  calls.reserve(count);
  for (const SampleRow* const row : rows) {
    if (calls.empty() || calls.back().place() != place(*row)) {
      SampledCall& call = calls.emplace_back();
      call.comm = row->comm;
      call.op = row->op;
      call.bin = row->bin;
      call.number = row->number;
    }
    calls.back().add(*row, clocks.at(row->rank));
  }
  return calls;
}

void add_calls(SampledCalls& to, const SampledCalls& more) {
  merge_by_place(to, more, [](SampledCall& a, const SampledCall& b) { a.add(b); });
}

Unsplit why_unsplit(const SampledCall& call, int size) {
  const Waits waits = waits_in(call);
  if (call.members != size) return Unsplit::members;
  if (waits == Waits::lower || waits == Waits::sources || waits == Waits::none) return Unsplit::prefix;
  if (has_no_data(call.op, call.bin, call.flags)) return Unsplit::no_data;
  // What takes less time than the clocks may differ tells nothing.
  const bool has_clocks = !call.has_machines || (call.is_related && call.tolerance() <= call.longest);
  if (needs_clocks(call) && !has_clocks) return Unsplit::machines;
  if (waits != Waits::last && call.root < 0) return Unsplit::machines;
  if (!is_by_clock(call)) return Unsplit::no;
  const auto tolerance = static_cast<Ticks>(
      (static_cast<double>(core_tolerance) + static_cast<double>(call.tolerance())) / call.clock.ns_per_tick);
  const auto is_before = [&](Ticks left, Ticks entered) { return left + tolerance < entered; };
  const bool is_unordered = waits == Waits::last   ? is_before(call.first_left, call.last.first)
                            : waits == Waits::root ? is_before(call.first_left, call.root_entered)
                                                   : is_before(call.root_left, call.last_other.first);
  return is_unordered ? Unsplit::unordered : Unsplit::no;
}

SampledLate late_in(const SampledCall& call) {
  SampledLate late;
  const auto ns = [&](Ticks end, Ticks begin) { return in_ns(later_by(end, begin), call.clock); };
  if (!is_by_clock(call)) {
    late.rank = call.hasty.rank;
    late.late = call.hasty.first - call.hasty.second;
    late.spread = call.longest - call.shortest;
    return late;
  }
  late.spread = ns(call.last.first, call.first_entered);
  switch (waits_in(call)) {
    case Waits::root:
      late.rank = call.root;
      late.late = ns(call.root_entered, call.first_other);
      break;
    case Waits::others:
      late.rank = call.last_other.rank;
      late.late = ns(call.last_other.first, std::max(call.last_other.second, call.root_entered));
      break;
    default: late.rank = call.last.rank; late.late = ns(call.last.first, call.last.second);
  }
  return late;
}

namespace {

// Communicator, procedure, size bin and rank.
using OfRank = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, int>;
OfRank of_rank(const SampleRow& row) { return {row.comm, row.op, row.bin, row.rank}; }

// One sample of a call that is split.
struct Part {
  SampledCall* call;
  OfRank of;
  Ns time, waiting;
};

struct Sums {
  std::uint64_t calls = 0;  // all calls
  Ns all = 0;               // their time
  Ns time = 0, waiting = 0;
};

// Adds to each call by how much the waiting of these ranks deviates from their shares, and how many calls they made.
void add_residuals(const Profile& profile, const std::vector<Part>& parts) {
  std::map<OfRank, Sums> sums;
  for (const Part& part : parts) {
    sums[part.of].time += part.time;
    sums[part.of].waiting += part.waiting;
  }
  for (const Profile::Row& row : profile.rows) {
    const Profile::KeyFacts& key = profile.keys[row.key];
    const auto found = sums.find({key.comm, key.op, key.bin, row.rank});
    if (found == sums.end()) continue;
    found->second.all += row.time;
    found->second.calls += row.calls;
  }
  for (const Part& part : parts) {
    const Sums& sum = sums[part.of];
    part.call->calls += sum.calls;
    if (sum.time == 0) continue;
    const double share = static_cast<double>(sum.waiting) / static_cast<double>(sum.time);
    const double scale = static_cast<double>(sum.all) / static_cast<double>(sum.time);
    const double deviation = static_cast<double>(part.waiting) - share * static_cast<double>(part.time);
    part.call->residual += static_cast<std::int64_t>(scale * deviation);
  }
}

// Adds a sample to the row of its rank.
void add_sample(WaitingRow& sum, const SampledCall& call, const SampleRow& row, const RankClock& clock, Ns waiting) {
  const SampledLate late = late_in(call);
  const Ns spent = spent_ns(row, clock);
  ++sum.samples;
  sum.time += spent;
  sum.waiting += waiting;
  if (late.rank == row.rank && late.late != 0) {
    ++sum.last;
    sum.late += late.late;
  }
  sum.behind += is_by_clock(call) ? in_ns(later_by(entry_in(call, row, clock), call.first_entered), call.clock)
                                  : call.longest - spent;
}

// Adds the time from the previous sample of the same rank and stratum.
void add_between(WaitingRow& sum, const SampleRow& previous, const SampleRow& row, const RankClock& clock) {
  const Ticks between = later_by(row.entered, previous.entered + previous.spent);
  const Ticks in_mpi = later_by(row.mpi, previous.mpi + previous.spent);
  sum.between += in_ns(between, clock);
  // Not subtracted here: of untimed calls, most of these times have too little, and some too much.
  sum.in_mpi += in_ns(in_mpi, clock);
}

}  // namespace

void split(Profile& profile, SampledCalls& calls) {
  const std::map<int, RankClock> clocks = clocks_of(profile);
  std::vector<SampleRow>& rows = profile.samples;
  const auto place = [](const SampleRow& r) { return std::make_tuple(r.rank, r.comm, r.op, r.bin, r.number); };
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, int>, WaitingRow> sums;
  std::vector<Part> parts;
  const SampleRow* before = nullptr;
  for (const SampleRow& row : rows) {
    const SampleRow* const previous = before != nullptr && of_rank(*before) == of_rank(row) ? before : nullptr;
    if (previous != nullptr && previous->number == row.number) continue;
    before = &row;
    const auto at = std::make_tuple(row.comm, row.op, row.bin, row.number);
    const auto found = std::lower_bound(calls.begin(), calls.end(), at,
                                        [](const SampledCall& call, const auto& of) { return call.place() < of; });
    if (found == calls.end() || found->place() != at) continue;
    if (why_unsplit(*found, profile.comms[row.comm].size) != Unsplit::no) continue;
    const RankClock& clock = clocks.at(row.rank);
    const Ns waiting = waited(*found, row, clock);
    found->waiting += waiting;
    WaitingRow& sum = sums[{row.comm, row.op, row.bin, row.region, row.rank}];
    add_sample(sum, *found, row, clock, waiting);
    parts.push_back({&*found, of_rank(row), in_ns(row.spent, clock), waiting});
    if (previous != nullptr) add_between(sum, *previous, row, clock);
  }
  add_residuals(profile, parts);
  for (auto& [key, sum] : sums) {
    std::tie(sum.comm, sum.op, sum.bin, sum.region, sum.rank) = key;
    profile.waiting.push_back(sum);
  }
}

namespace {

// Returns how many members of a call may wait.
Ns waiting_members(const SampledCall& call) {
  const auto members = static_cast<Ns>(call.members);
  const Waits waits = waits_in(call);
  return waits == Waits::last ? members : waits == Waits::root ? members - 1 : 1;
}

// Adds up calls of one communicator, procedure and size bin that were split.
SampledRow row_of(const std::vector<const SampledCall*>& calls) {
  constexpr std::uint64_t fewest = 4;  // samples from which on their deviations tell the error
  const SampledCall& first = *calls.front();
  SampledRow row{first.comm, first.op, first.bin};
  std::vector<Ns> spreads;
  double squares = 0;
  for (const SampledCall* const call : calls) {
    const SampledLate late = late_in(*call);
    row.time += call->time;
    row.waiting += call->waiting;
    row.late += late.late;
    row.across += call->has_machines ? 1 : 0;
    if (call->has_machines && is_by_clock(*call)) {
      ++row.by_clock;
      row.clock += call->tolerance() * waiting_members(*call);
    }
    squares += static_cast<double>(call->residual) * static_cast<double>(call->residual);
    spreads.push_back(late.spread);
  }
  row.samples = calls.size();
  row.of = std::max(row.samples, first.calls / static_cast<std::uint64_t>(first.members));
  row.has_error = row.samples >= fewest || row.samples == row.of;
  if (row.samples != row.of && row.has_error) {
    const auto n = static_cast<double>(row.samples);
    row.error = static_cast<Ns>(std::sqrt((1 - n / static_cast<double>(row.of)) * n / (n - 1) * squares));
  }
  row.error +=
      static_cast<Ns>(static_cast<double>(row.clock) * static_cast<double>(row.of) / static_cast<double>(row.samples));
  const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
  std::nth_element(spreads.begin(), middle, spreads.end());
  row.spread = *middle;
  return row;
}

}  // namespace

void sum_up(Profile& profile, const SampledCalls& calls) {
  using Kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<std::pair<Kind, Unsplit>, std::vector<const SampledCall*>> groups;
  for (const SampledCall& call : calls) {
    const Unsplit why = why_unsplit(call, profile.comms[call.comm].size);
    groups[{{call.comm, call.op, call.bin}, why}].push_back(&call);
  }
  for (const auto& [key, group] : groups) {
    if (key.second == Unsplit::no) {
      profile.sampled.push_back(row_of(group));
    } else {
      const auto& [comm, op, bin] = key.first;
      profile.unsplit.push_back({comm, op, bin, key.second, group.size()});
    }
  }
}

void write_calls(WireWriter& out, const SampledCalls& calls) {
  Encoder encoder(out);
  encoder.list(calls, 0, [&encoder](const SampledCall& call) { fields(encoder, call); });
}

SampledCalls read_sampled_calls(WireReader& in) {
  SampledCalls calls;
  Decoder decoder(in);
  decoder.list(calls, 0, [&decoder](SampledCall& call) { fields(decoder, call); });
  if (!in.ok()) calls.clear();
  return calls;
}

}  // namespace commlens
