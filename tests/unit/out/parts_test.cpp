// SPDX-License-Identifier: Apache-2.0
#include "core/out/parts.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <cstdlib>
#include <ctime>

#include "tests/unit/check.h"

namespace commlens::out {
namespace {

std::string fresh_directory() {
  char name[] = "/tmp/parts-XXXXXX";
  return mkdtemp(name);
}

int entries(const std::string& directory) {
  int n = 0;
  DIR* const open = opendir(directory.c_str());
  if (open == nullptr) return -1;
  while (const dirent* const entry = readdir(open)) n += entry->d_name[0] != '.' || entry->d_name[1] > '.' ? 1 : 0;
  closedir(open);
  return n;
}

std::vector<char> bytes_of(int rank) {
  return std::vector<char>(static_cast<std::size_t>(rank) * 1000, static_cast<char>('a' + rank));
}

}  // namespace

TEST(the_last_one_and_nobody_else_claims_all_parts) {
  const std::string where = fresh_directory();
  const std::time_t now = std::time(nullptr);
  for (int rank = 0; rank < 3; ++rank) {
    Parts mine(where + "/x.db", 0x1234, now);
    CHECK(!mine.claim(3));
    if (rank == 0) mine.put_orders(bytes_of(5));
    CHECK(mine.put(rank, bytes_of(rank)));
    CHECK_EQ(mine.claim(3), rank == 2);
  }
  Parts late(where + "/y.db", 0x1234, now);  // the name of the profile may differ from rank to rank
  CHECK(!late.claim(3));
  for (int rank = 0; rank < 3; ++rank) CHECK(late.get(rank) == bytes_of(rank));
  CHECK(late.orders() == bytes_of(5));
  late.remove(3);
  CHECK_EQ(entries(where), 0);
  CHECK(late.get(1).empty());
  CHECK(late.orders().empty());
  rmdir(where.c_str());
}

TEST(parts_of_another_job_are_not_mixed_in) {
  const std::string where = fresh_directory();
  const std::time_t now = std::time(nullptr);
  Parts one(where + "/x.db", 1, now), other(where + "/x.db", 2, now);
  CHECK(one.put(0, bytes_of(1)));
  CHECK(other.put(1, bytes_of(2)));
  CHECK(!one.claim(2));
  CHECK(!other.claim(2));
  // nor those of an earlier job that had the same number
  CHECK(one.put(1, bytes_of(3)));
  const utimbuf long_ago{now - 3600, now - 3600};
  CHECK_EQ(utime((one.directory() + "/rank0").c_str(), &long_ago), 0);
  CHECK(!one.claim(2));
  CHECK(one.put(0, bytes_of(4)));
  CHECK(one.claim(2));
  CHECK(one.get(0) == bytes_of(4));
  one.remove(2);
  other.remove(2);
  CHECK_EQ(entries(where), 0);
  rmdir(where.c_str());
}

TEST(a_part_that_cannot_be_written_says_why) {
  Parts nowhere("/proc/no-such-directory/x.db", 1, 0);
  CHECK(!nowhere.put(0, bytes_of(1)));
  CHECK(nowhere.error.find("rank0") != std::string::npos);
  CHECK(nowhere.error.find("No such file") != std::string::npos);
}

}  // namespace commlens::out
