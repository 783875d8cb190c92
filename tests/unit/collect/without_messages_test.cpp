// SPDX-License-Identifier: Apache-2.0
#include "core/collect/without_messages.h"

#include <ctime>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/unit/check.h"
#include "tests/unit/collect/virtual_job.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/commlens-parts-XXXXXX";
    root = mkdtemp(path) != nullptr ? path : "/nonexistent";
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path root;
};

// What a rank of the job brings that wants its profile under this name.
Contribution contribution(const VirtualJob& job, int rank, std::deque<CommRecord>& records, const fs::path& name) {
  Contribution own;
  own.counted = job.counted(rank, records);
  own.destination.name = name.string();
  own.destination.quiet = true;
  own.begin = now();
  return own;
}

}  // namespace

TEST(the_last_rank_writes_the_profile_where_rank_0_wants_it) {
  const Folder folder;
  VirtualJob job;
  job.ranks = 4;
  const std::time_t began = std::time(nullptr);
  for (int rank = 0; rank < job.ranks; ++rank) {
    std::deque<CommRecord> records;
    out::Parts parts((folder.root / "a.db").string(), 4711, began);
    CHECK_EQ(parts.has_begun(), rank > 0);
    const fs::path name = folder.root / ("of_rank" + std::to_string(rank) + ".db");
    OwnPart part = put_part(contribution(job, rank, records, name), rank, job.ranks, 77, parts);
    CHECK(part.is_there);
    CHECK_EQ(merge_parts(std::move(part), parts), rank == job.ranks - 1);
    CHECK_EQ(fs::exists(folder.root / "of_rank0.db"), rank == job.ranks - 1);
    CHECK_EQ(fs::exists(parts.directory()), rank < job.ranks - 1);
  }
  for (const char* other : {"of_rank1.db", "of_rank2.db", "of_rank3.db"}) CHECK(!fs::exists(folder.root / other));
}

TEST(parts_stay_if_the_profile_cannot_be_written) {
  const Folder folder;
  VirtualJob job;
  std::deque<CommRecord> records;
  out::Parts parts((folder.root / "a.db").string(), 4712, std::time(nullptr));
  Contribution own = contribution(job, 0, records, "");
  bool has_thrown = false;
  try {
    merge_parts(put_part(std::move(own), 0, 1, 77, parts), parts);
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  CHECK(has_thrown);
  CHECK(parts.get(0) && !parts.get(0)->empty());
}

// Parts that cannot be read, or are damaged, are the only copy of what a rank has counted.  A rank whose part is empty
// has kept its counters elsewhere.
TEST(parts_that_are_not_in_the_profile_stay) {
  constexpr int ranks = 3, odd = 1;
  for (const char* what : {"a folder", "damaged", "empty"}) {
    const Folder folder;
    VirtualJob job;
    job.ranks = ranks;
    out::Parts parts((folder.root / "a.db").string(), 4713, std::time(nullptr));
    const fs::path of_odd = fs::path(parts.directory()) / "rank1.part";
    for (int rank = 0; rank < ranks; ++rank) {
      std::deque<CommRecord> records;
      OwnPart part = put_part(contribution(job, rank, records, folder.root / "a.db"), rank, ranks, 77, parts);
      if (rank == odd && what[0] == 'a') {
        fs::remove(of_odd);
        fs::create_directory(of_odd);
      } else if (rank == odd) {
        fs::resize_file(of_odd, what[0] == 'd' ? fs::file_size(of_odd) / 2 : 0);
      }
      CHECK_EQ(merge_parts(std::move(part), parts), rank == ranks - 1);
    }
    CHECK(fs::exists(folder.root / "a.db"));
    CHECK_EQ(fs::exists(of_odd), what[0] != 'e');
    CHECK_EQ(fs::exists(parts.directory()), what[0] != 'e');
  }
}

TEST(a_rank_alone_writes_a_profile_of_its_own) {
  const Folder folder;
  VirtualJob job;
  job.ranks = 4;
  std::deque<CommRecord> records;
  CHECK(collect_alone(contribution(job, 2, records, folder.root / "a.rank2.db"), job.ranks));
  CHECK(fs::exists(folder.root / "a.rank2.db"));
}

}  // namespace commlens
