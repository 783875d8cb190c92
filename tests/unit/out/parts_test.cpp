// SPDX-License-Identifier: Apache-2.0
#include "core/out/parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "tests/unit/check.h"

extern std::string directory_to_vanish;  // before the next file is opened (files_test.cpp)

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
  // Where a file server maps users, the files belong to another one than the folder or the process.
  if (geteuid() == 0) CHECK_EQ(chown((late.directory() + "/rank1.part").c_str(), 12345, 12345), 0);
  for (int rank = 0; rank < 3; ++rank) CHECK(late.get(rank) == bytes_of(rank));
  CHECK(late.orders() == bytes_of(5));
  late.remove(3);
  CHECK_EQ(entries(where), 0);
  CHECK(!late.get(1));
  CHECK(late.orders().empty());
  rmdir(where.c_str());
}

TEST(a_part_is_stored_though_another_process_removes_the_directory) {
  const std::string where = fresh_directory();
  Parts mine(where + "/x.db", 0x1234, std::time(nullptr));
  directory_to_vanish = mine.directory();
  CHECK(mine.put(0, bytes_of(3)));
  CHECK(directory_to_vanish.empty());
  CHECK(mine.get(0) == bytes_of(3));
  mine.remove(1);
  rmdir(where.c_str());
}

TEST(a_directory_that_is_not_private_is_never_used) {
  const std::string where = fresh_directory(), folder = where + "/.commlens-0000000000001234", other = where + "/other";
  const std::time_t now = std::time(nullptr);
  mkdir(other.c_str(), 0700);
  // Others may write to it; it is a symbolic link; and, where the test may give it away, another user's.
  const auto is_refused = [&] {
    Parts mine(where + "/x.db", 0x1234, now);
    const bool is_put = mine.put(0, bytes_of(0));
    mine.put_orders(bytes_of(1));
    return !is_put && !mine.error.empty() && mine.has_begun() && !mine.claim(1) && !mine.get(0) &&
           mine.orders().empty();
  };
  mkdir(folder.c_str(), 0700);
  for (const mode_t mode : {0770, 0702}) {
    chmod(folder.c_str(), mode);
    CHECK(is_refused());
  }
  chmod(folder.c_str(), 0700);
  if (chown(folder.c_str(), 12345, 12345) == 0) CHECK(is_refused());
  chmod(folder.c_str(), 0000);
  if (chown(folder.c_str(), 12345, 12345) == 0) CHECK(is_refused());
  if (geteuid() != 0) chmod(folder.c_str(), 0700);  // whoever is not root has to be let in to look
  CHECK_EQ(entries(folder), 0);
  rmdir(folder.c_str());
  CHECK_EQ(symlink(other.c_str(), folder.c_str()), 0);
  CHECK(is_refused());
  CHECK_EQ(entries(other), 0);
  unlink(folder.c_str());
  rmdir(other.c_str());
  rmdir(where.c_str());
}

TEST(what_stands_in_the_place_of_a_part_is_replaced_and_never_written_to) {
  const std::string where = fresh_directory(), folder = where + "/.commlens-0000000000001234", target = where + "/kept";
  const std::time_t now = std::time(nullptr);
  mkdir(folder.c_str(), 0700);
  close(open(target.c_str(), O_WRONLY | O_CREAT, 0600));
  CHECK_EQ(symlink(target.c_str(), (folder + "/rank0.part.new").c_str()), 0);
  CHECK_EQ(symlink(target.c_str(), (folder + "/rank0.part").c_str()), 0);
  Parts mine(where + "/x.db", 0x1234, now);
  CHECK(mine.put(0, bytes_of(7)));
  CHECK(mine.get(0) == bytes_of(7));
  struct stat facts;
  CHECK(stat(target.c_str(), &facts) == 0 && facts.st_size == 0);
  mine.remove(1);
  unlink(target.c_str());
  CHECK_EQ(entries(where), 0);
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
  CHECK_EQ(utime((one.directory() + "/rank0.part").c_str(), &long_ago), 0);
  CHECK(!one.claim(2));
  CHECK(one.put(0, bytes_of(4)));
  CHECK(one.claim(2));
  CHECK(!one.claim(2));  // another rank has it
  // That of a job which could not write its profile counts no more.
  CHECK_EQ(utime((one.directory() + "/claimed").c_str(), &long_ago), 0);
  CHECK(one.claim(2));
  CHECK(!one.claim(2));
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
