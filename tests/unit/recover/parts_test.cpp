// SPDX-License-Identifier: Apache-2.0
// Parts of a job whose ranks were to meet through files: they are read and merged like arenas.
#include <sys/stat.h>

#include <csignal>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/collect/package.h"
#include "core/collect/part.h"
#include "core/recover/merge.h"
#include "core/recover/read.h"
#include "tests/unit/check.h"
#include "tests/unit/collect/virtual_job.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// The part of a rank of a job of `ranks` processes.
std::string part_of_rank(int rank, int ranks, std::uint64_t launch) {
  VirtualJob job;
  job.ranks = ranks;
  std::deque<CommRecord> records;
  const Counted counted = job.counted(rank, records);
  const PartHead head{rank,
                      ranks,
                      launch,
                      counted.facts.world,
                      4000 + rank,
                      1'500'000'000,
                      "node" + std::to_string(rank),
                      "/there/x.db",
                      {{"program", "app"}, {"start_time", "2026-11-28T09:00:00Z"}}};
  const std::vector<char> bytes = part_of(head, packed(counted, 0, {}));
  return {bytes.begin(), bytes.end()};
}

std::unique_ptr<arena::Reader> read_from(const std::string& path, const std::string& content) {
  write_file(path, content);
  chmod(path.c_str(), 0600);
  auto reader = std::make_unique<arena::Reader>();
  reader->read(path);
  return reader;
}

}  // namespace

TEST(a_part_names_its_process_and_its_job) {
  const Folder folder;
  const auto reader = read_from(folder.path() + "/rank2.part", part_of_rank(2, 4, 77));
  CHECK_EQ(reader->error, std::string());
  CHECK_EQ(reader->job().rank, 2);
  CHECK_EQ(reader->job().size, 4);
  CHECK_EQ(reader->job().launch, 77u);
  CHECK_EQ(reader->job().node, std::string("node2"));
  CHECK_EQ(reader->job().output, std::string("/there/x.db"));
  CHECK_EQ(reader->job().meta.size(), 2u);
  CHECK_EQ(reader->process().pid, 4002);
  CHECK_EQ(reader->counted().facts.app_ns, 1'500'000'000u);
  CHECK_EQ(reader->counted().facts.state, std::string("finalized"));
  CHECK(reader->liveness() == arena::Liveness::gone);
}

TEST(parts_make_the_profile_that_their_job_would_have_made) {
  const Folder folder;
  constexpr int ranks = 4;
  Profile merged;
  Readers readers;
  for (const int rank : {0, 2, 3}) {  // rank 1 was killed
    const std::string content = part_of_rank(rank, ranks, 77);
    const std::optional<Part> part = read_part(content.data(), content.size());
    CHECK(part && merged.add(part->package, part->bytes));
    readers.push_back(read_from(folder.path() + "/rank" + std::to_string(rank) + ".part", content));
  }
  merged.finish();
  const Profile profile = profile_of(readers, [](const std::string& what) { CHECK_EQ(what, std::string()); });
  CHECK_EQ(profile.world_size, ranks);
  CHECK_EQ(profile.dictionary.comm_identities().size(), merged.dictionary.comm_identities().size());
  CHECK_EQ(profile.ranks.size(), merged.ranks.size());
  for (std::size_t i = 0; i < merged.ranks.size(); ++i) {
    CHECK_EQ(profile.ranks[i].facts.rank, merged.ranks[i].facts.rank);
    CHECK_EQ(profile.ranks[i].mpi_ns, merged.ranks[i].mpi_ns);
    CHECK(profile.ranks[i].mpi_ns > 0);
  }
}

// The communicators of both have the same world.
TEST(the_arena_of_a_killed_rank_joins_the_parts_of_the_others) {
  const Folder folder;
  live(folder.path(), [&](Registry&) {
    count(world, 3, 10);
    raise(SIGKILL);
  });
  auto killed = std::make_unique<arena::Reader>();
  CHECK(killed->read(folder.file()));
  const std::uint64_t launch = killed->job().launch;
  const int ranks = killed->job().size, other = killed->job().rank == 0 ? 1 : 0;
  CHECK(ranks > 1);
  Readers readers;
  readers.push_back(read_from(folder.path() + "/other.part", part_of_rank(other, ranks, launch)));
  CHECK_EQ(readers[0]->error, std::string());
  const Identity agreed = readers[0]->counted().facts.world;
  readers.push_back(std::move(killed));
  const Profile profile = profile_of(readers, [](const std::string& what) { CHECK_EQ(what, std::string()); });
  CHECK_EQ(profile.ranks.size(), 2u);
  for (const Profile::Rank& rank : profile.ranks) CHECK_EQ(rank.facts.world, agreed);
}

TEST(a_damaged_part_is_refused) {
  const Folder folder;
  const std::string whole = part_of_rank(0, 4, 77), path = folder.path() + "/rank0.part";
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(!read_part(whole.data(), size));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    CHECK(!read_part(changed.data(), changed.size()));
  }
  const auto reader = read_from(path, whole.substr(0, whole.size() - 1));
  CHECK_EQ(reader->error, path + ": a damaged part, or one of another version of commlens");
}

}  // namespace commlens
