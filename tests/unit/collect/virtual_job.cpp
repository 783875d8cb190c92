// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/collect/virtual_job.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/process/coverage.h"
#include "generated/procedures.h"

namespace commlens {

namespace {

// The largest cube that the ranks fill, and a line of the others.
class Grid {
 public:
  explicit Grid(int ranks) : ranks_(ranks) {
    while ((side_ + 1) * (side_ + 1) * (side_ + 1) <= ranks) ++side_;
  }

  // Neighbour i of 26, faces first, and in how many dimensions it is another place.
  std::pair<int, int> neighbour(int rank, int i) const {
    std::vector<std::array<int, 3>> steps;
    for (int distance = 1; distance <= 3; ++distance) {
      for (int n = 0; n < 27; ++n) {
        const std::array<int, 3> step{n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
        if (std::abs(step[0]) + std::abs(step[1]) + std::abs(step[2]) == distance) steps.push_back(step);
      }
    }
    const std::array<int, 3> step = steps[static_cast<std::size_t>(i)];
    const int distance = std::abs(step[0]) + std::abs(step[1]) + std::abs(step[2]);
    if (rank >= side_ * side_ * side_) return {(rank + step[0] + ranks_) % ranks_, distance};
    int at = 0;
    for (int d = 2, size = side_ * side_; d >= 0; --d, size /= side_)
      at += (rank / size % side_ + step[static_cast<std::size_t>(d)] + side_) % side_ * size;
    return {at, distance};
  }

 private:
  int ranks_, side_ = 1;
};

// The communicators of a rank.
void add_communicators(const VirtualJob& job, int rank, std::deque<CommRecord>& records) {
  records.clear();
  records.emplace_back();  // no communicator
  std::uint32_t count = 0;
  const auto add = [&](Identity identity, Identity kin, char letter, std::uint32_t parent, std::uint32_t op, Site site,
                       int leader, int own, int size) {
    CommRecord& c = records.emplace_back();
    c.view.index = static_cast<std::uint32_t>(records.size() - 1);
    c.view.rank = own;
    c.view.size = size;
    c.kind = CommKind::intra;
    c.identity = identity;
    c.kin = kin;
    c.parent = parent;
    c.op = op;
    c.letter = letter;
    c.site = site;
    c.leader = leader;
    c.count = letter == letter_world || letter == letter_self ? 0 : ++count;
    c.created = 1000 + static_cast<Ticks>(rank) + c.view.index;
  };
  const int ranks = job.ranks;
  add(1000, 1000, letter_world, 0, 0, 0, 0, rank, ranks);
  for (int i = 0; i < job.duplicates; ++i)
    add(2000 + static_cast<Identity>(i), 2000 + static_cast<Identity>(i), 'd', 1, op::MPI_Comm_dup, 0x100, 0, rank,
        ranks);
  if (job.columns != 0) {
    const int row = rank / job.columns, column = rank % job.columns;
    const int in_row = std::min(job.columns, ranks - row * job.columns);
    add(30'000 + static_cast<Identity>(row), combine(30'000, static_cast<Identity>(in_row)), 's', 1, op::MPI_Comm_split,
        0x200, row * job.columns, column, in_row);
    const int in_column = (ranks - column + job.columns - 1) / job.columns;
    add(60'000'000 + static_cast<Identity>(column), combine(60'000'000, static_cast<Identity>(in_column)), 's', 1,
        op::MPI_Comm_split, 0x300, column, row, in_column);
  }
  if (job.has_self) add(90'000'000 + static_cast<Identity>(rank), 90'000'000, letter_self, 0, 0, 0, rank, 0, 1);
}

RankFacts facts_of(int rank) {
  RankFacts facts;
  facts.rank = rank;
  facts.world = 4711;
  facts.node = "node" + std::to_string(rank / 128);
  facts.pid = 1000 + rank % 128;
  facts.cpus = std::to_string(rank % 128);
  facts.app_ns = 1'000'000'000 + static_cast<Ns>(rank) % 1000;
  if (rank % 4 != 3) facts.use = ProcessorUse{facts.app_ns - 1000, 1 + static_cast<std::uint64_t>(rank)};
  facts.threads = 1;
  facts.coverage = written({{"MPI_Allreduce", "app", Treatment::measured}, {"MPI_Send", "app", Treatment::measured}});
  return facts;
}

// Operation i on a communicator.
Cell cell_of(const VirtualJob& job, int rank, std::uint32_t comm, int i) {
  constexpr std::uint32_t ops[] = {op::MPI_Allreduce, op::MPI_Bcast,   op::MPI_Isend,  op::MPI_Irecv,
                                   op::MPI_Waitall,   op::MPI_Barrier, op::MPI_Reduce, op::MPI_Allgather};
  const auto n = static_cast<std::uint64_t>(i + 1);
  // Some microseconds a call, no two ranks alike; the shortest is a tenth and the longest a hundred times that.
  const Ticks each = 500 + mixed(n * 1'000'003 + comm * 1009 + static_cast<std::uint64_t>(rank)) % 40'000;
  const Ticks time = 1000 * n * each + mixed(each + comm) % 1000;
  Cell cell{};
  cell.key = make_key(comm, ops[static_cast<std::size_t>(i) % std::size(ops)], bin_of(std::uint64_t{8} << (i / 8)),
                      job.regions == 0 ? 0 : 1 + static_cast<std::uint32_t>(i % job.regions));
  cell.site = 0x1000 + static_cast<Site>(i);
  cell.calls = 1000 * n;
  cell.time = time;
  cell.time_min = each / 10;
  cell.time_max = each * 100 + comm;
  cell.bytes_sent = 8000 * n;
  cell.bytes_received = 8000 * n;
  return cell;
}

void add_cells(const VirtualJob& job, int rank, std::uint32_t comm, Counted& counted) {
  for (int i = 0; i < job.operations; ++i) {
    const Cell cell = cell_of(job, rank, comm, i);
    add_cell_to(counted, nullptr, cell);
    for (int slot = 0; slot < job.slices; ++slot) {
      counted.slices.entries.push_back(
          {slice_key(cell.key), static_cast<std::uint64_t>(slot), 1000, cell.time / 128, 8, 8});
    }
  }
}

void add_regions(int regions, int rank, CountedRegions& counted) {
  std::vector<Ticks> inside(static_cast<std::size_t>(regions) + 1, 0);  // time in the regions within each
  for (std::size_t i = 1; i <= static_cast<std::size_t>(regions); ++i)
    counted.names.push_back(
        {static_cast<std::uint32_t>((i - 1) / 4), RegionKind::region, "region_of_the_program_" + std::to_string(i)});
  for (std::size_t i = inside.size() - 1; i > 0; --i) {
    const Ticks own = 1'000'000 + mixed(i * 1'000'003 + static_cast<std::uint64_t>(rank)) % 400'000;
    CountedRegions::Sum& sum = counted.times[make_region_key(static_cast<std::uint32_t>(i), 0, -1)];
    sum.calls = 1000;
    sum.time = own + inside[i];
    sum.time_min = sum.time / 2000;
    sum.time_max = sum.time / 100;
    sum.nested = inside[i];
    sum.mpi = own / 4;
    inside[(i - 1) / 4] += sum.time;
  }
}

void add_neighbours(const VirtualJob& job, int rank, Counted& counted) {
  const Grid grid(job.ranks);
  for (int i = 0; i < job.neighbours; ++i) {
    const auto [peer, distance] = grid.neighbour(rank, i);
    const std::uint64_t bytes = std::uint64_t{1} << (20 - 6 * distance);
    const PeerPlace place = make_peer_place(static_cast<std::uint32_t>(peer), 0);
    for (const Flow flow : {Flow::sent, Flow::received}) {
      PeerSum& sum = counted.peers[{make_peer_key(flow, bin_of(bytes), 1, 0, 0), place}];
      sum.messages += 1000;
      sum.bytes += 1000 * bytes;
      sum.world = peer;
    }
  }
}

}  // namespace

Counted VirtualJob::counted(int rank, std::deque<CommRecord>& records) const {
  add_communicators(*this, rank, records);
  Counted counted;
  counted.facts = facts_of(rank);
  for (const CommRecord& c : records) counted.comms.push_back(&c);
  for (std::uint32_t comm = 1; comm < records.size(); ++comm) add_cells(*this, rank, comm, counted);
  add_regions(regions, rank, counted.regions);
  add_neighbours(*this, rank, counted);
  counted.place = [](Site site) { return SiteFacts{"/opt/app/bin/app", "0123456789abcdef", site}; };
  counted.caller = [levels = static_cast<Site>(frames)](Site site) {
    const Site level = site >> 32;
    return level + 1 < levels ? (level + 1) << 32 | site % 4 : 0;
  };
  return counted;
}

}  // namespace commlens
