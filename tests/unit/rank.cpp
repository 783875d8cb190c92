// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rank.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/collect/package.h"
#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

constexpr Identity world_id = 42;  // of the job

}  // namespace

Identity told(Identity identity) { return combine(world_id, identity); }

std::vector<char> packed_by_rank(int rank, const std::function<void(Registry&)>& life, const std::string& coverage) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    clock_is_tsc = false;
    Registry registry;
    life(registry);
    Counted counted = counted_here(registry, now());
    RankFacts& facts = counted.facts;
    facts.rank = rank;
    facts.world = world_id;
    facts.node = "node" + std::to_string(rank / 2);
    facts.pid = 100 + rank;
    facts.cpus = "0-3";
    facts.app_ns = 1'000'000 + static_cast<Ns>(rank);
    if (rank != 1) facts.use = ProcessorUse{900'000 + static_cast<Ns>(rank), 7};
    facts.threads = 1;
    facts.coverage = coverage;
    const std::vector<char> bytes = packed(counted, now(), SlicePlan());
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = write(ends[1], bytes.data() + done, bytes.size() - done);
      if (n <= 0) _exit(1);
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::vector<char> bytes;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) bytes.insert(bytes.end(), buffer, buffer + n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? bytes : std::vector<char>();
}

void add_world(Registry& registry, int rank, int size) {
  CommRecord record;
  record.kind = CommKind::intra;
  record.identity = world_identity;
  record.letter = letter_world;
  record.leader = 0;
  record.view.rank = rank;
  record.view.size = size;
  if (registry.add(std::move(record), false).index != world) std::abort();
}

std::uint32_t add_comm(Registry& registry, int rank, const Made& made) {
  CommRecord record;
  record.kind = CommKind::intra;
  record.identity = made.identity;
  record.letter = made.letter;
  record.parent = made.parent;
  record.op = made.letter == 'd' ? op::MPI_Comm_dup : op::MPI_Comm_split;
  record.site = made.site;
  record.leader = made.members.front();
  const auto own = std::find(made.members.begin(), made.members.end(), rank);
  record.view.rank = static_cast<int>(own - made.members.begin());
  record.view.size = static_cast<int>(made.members.size());
  return registry.add(std::move(record), true).index;
}

void count(std::uint32_t comm, std::uint32_t op, int n, Ticks spent, std::uint64_t sent, Site site) {
  for (int i = 0; i < n; ++i) {
    record(this_thread(), make_key(comm, op, bin_of(sent), 0), site, spent, sent, 0);
  }
}

Profile merged(const std::vector<std::vector<char>>& packages) {
  Profile profile;
  for (const std::vector<char>& bytes : packages) profile.add(bytes.data(), bytes.size());
  profile.finish();
  return profile;
}

const Profile::Comm* comm_named(const Profile& profile, const std::string& name) {
  for (const Profile::Comm& c : profile.comms) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

std::uint64_t calls_in(const Profile& profile, const std::string& name, int rank) {
  std::uint64_t calls = 0;
  for (const Profile::Row& row : profile.rows) {
    const Profile::KeyFacts& key = profile.keys[row.key];
    if (profile.comms[key.comm].name == name && (rank == -1 || row.rank == rank)) calls += row.calls;
  }
  return calls;
}

}  // namespace commlens
