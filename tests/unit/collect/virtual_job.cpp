// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/collect/virtual_job.h"

#include "core/cold/coverage.h"
#include "generated/procedures.h"

namespace commlens {

Counted VirtualJob::counted(int rank, std::deque<CommRecord>& records) const {
  records.clear();
  records.emplace_back();  // no communicator
  std::uint32_t count = 0;
  const auto add = [&](Identity identity, char letter, std::uint32_t parent, std::uint32_t op, Site site, int leader,
                       int own, int size) {
    CommRecord& c = records.emplace_back();
    c.view.index = static_cast<std::uint32_t>(records.size() - 1);
    c.view.rank = own;
    c.view.size = size;
    c.kind = CommKind::intra;
    c.identity = identity;
    c.parent = parent;
    c.op = op;
    c.letter = letter;
    c.site = site;
    c.leader = leader;
    c.count = letter == letter_world || letter == letter_self ? 0 : ++count;
    c.created = 1000 + static_cast<Ticks>(rank) + c.view.index;
  };
  add(1000, letter_world, 0, 0, 0, 0, rank, ranks);
  for (int i = 0; i < duplicates; ++i)
    add(2000 + static_cast<Identity>(i), 'd', 1, op::MPI_Comm_dup, 0x100, 0, rank, ranks);
  if (columns != 0) {
    const int row = rank / columns, column = rank % columns;
    const int in_row = std::min(columns, ranks - row * columns);
    add(30'000 + static_cast<Identity>(row), 's', 1, op::MPI_Comm_split, 0x200, row * columns, column, in_row);
    add(60'000'000 + static_cast<Identity>(column), 's', 1, op::MPI_Comm_split, 0x300, column, row,
        (ranks - column + columns - 1) / columns);
  }
  if (has_self) add(90'000'000 + static_cast<Identity>(rank), letter_self, 0, 0, 0, rank, 0, 1);

  Counted counted;
  RankFacts& facts = counted.facts;
  facts.rank = rank;
  facts.world = 4711;
  facts.node = "node" + std::to_string(rank / 128);
  facts.pid = 1000 + rank % 128;
  facts.cpus = std::to_string(rank % 128);
  facts.app_ns = 1'000'000'000 + static_cast<Ns>(rank) % 1000;
  facts.threads = 1;
  facts.coverage = written({{"MPI_Allreduce", "app", Treatment::measured}, {"MPI_Send", "app", Treatment::measured}});
  for (const CommRecord& c : records) counted.comms.push_back(&c);
  constexpr std::uint32_t ops[] = {op::MPI_Allreduce, op::MPI_Bcast,   op::MPI_Isend,  op::MPI_Irecv,
                                   op::MPI_Waitall,   op::MPI_Barrier, op::MPI_Reduce, op::MPI_Allgather};
  for (std::uint32_t comm = 1; comm < records.size(); ++comm) {
    for (int i = 0; i < operations; ++i) {
      const auto n = static_cast<std::uint64_t>(i + 1);
      // Some microseconds a call, no two ranks alike; the shortest is a tenth and the longest a hundred times that.
      const Ticks each = 500 + mixed(n * 1'000'003 + comm * 1009 + static_cast<std::uint64_t>(rank)) % 40'000;
      const Ticks time = 1000 * n * each + mixed(each + comm) % 1000;
      Cell cell{};
      cell.key =
          make_key(comm, ops[static_cast<std::size_t>(i) % std::size(ops)], bin_of(std::uint64_t{8} << (i / 8)), 0);
      cell.site = 0x1000 + static_cast<Site>(i);
      cell.calls = 1000 * n;
      cell.time = time;
      cell.time_min = each / 10;
      cell.time_max = each * 100 + comm;
      cell.bytes_sent = 8000 * n;
      cell.bytes_received = 8000 * n;
      counted.cells.emplace(std::make_pair(cell.key, cell.site), cell);
      for (int slot = 0; slot < slices; ++slot) {
        counted.slices.entries.push_back(
            {slice_key(cell.key), static_cast<std::uint64_t>(slot), 1000, time / 128, 8, 8});
      }
    }
  }
  counted.place = [](Site site) { return SiteFacts{"/opt/app/bin/app", "0123456789abcdef", site}; };
  return counted;
}

}  // namespace commlens
