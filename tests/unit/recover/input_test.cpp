// SPDX-License-Identifier: Apache-2.0
#include "core/recover/input.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/recover/read.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// Leaves an arena in `folder`, and returns its path.
std::string killed(const Folder& folder) {
  live(folder.path(), [](Registry&) {
    count(world, 3, 10);
    raise(SIGKILL);
  });
  return folder.file();
}

std::string error_of(const std::string& path) {
  arena::Reader reader;
  const bool is_read = reader.read(path);
  CHECK_EQ(is_read, reader.error.empty());
  return is_read ? "" : reader.error.substr(path.size());
}

long most_memory() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

}  // namespace

TEST(only_a_regular_file_is_opened_and_nothing_waits) {
  const Folder folder, other;
  const std::string arena = killed(folder), path = other.path() + "/x.arena";
  alarm(20);  // a FIFO would wait for ever
  CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
  CHECK_EQ(error_of(path), std::string(": not a regular file"));
  unlink(path.c_str());
  CHECK_EQ(symlink(arena.c_str(), path.c_str()), 0);
  CHECK_EQ(error_of(path), std::string(": a symbolic link"));
  CHECK_EQ(error_of(other.path()), std::string(": not a regular file"));
  CHECK_EQ(error_of("/dev/zero"), std::string(": not a regular file"));
  CHECK_EQ(error_of(other.path() + "/none"), std::string(": No such file or directory"));
  alarm(0);
  CHECK_EQ(error_of(arena), std::string());
}

TEST(a_file_others_may_write_to_is_refused) {
  const Folder folder;
  const std::string arena = killed(folder);
  for (const mode_t mode : {0620u, 0602u, 0666u}) {
    chmod(arena.c_str(), mode);
    CHECK_EQ(error_of(arena), std::string(": others may write to it"));
  }
  chmod(arena.c_str(), 0644);
  CHECK_EQ(error_of(arena), std::string());
}

TEST(a_file_of_another_user_is_refused_also_by_root) {
  ONLY_IF(geteuid() == 0, "only root gives files away");
  const Folder folder;
  const std::string arena = killed(folder);
  CHECK_EQ(chown(arena.c_str(), 4711, 4711), 0);
  CHECK_EQ(error_of(arena), std::string(": belongs to another user (uid 4711)"));
  in_own_process([&] {
    chmod(folder.path().c_str(), 0755);
    CHECK_EQ(setresuid(4711, 4711, 4711), 0);
    CHECK_EQ(error_of(arena), std::string());
  });
}

TEST(holes_of_a_file_take_no_memory) {
  const Folder folder;
  const std::string arena = killed(folder);
  in_own_process([&] {
    const long before = most_memory();
    for (const off_t size : {off_t{2} << 30, off_t{16} << 30}) {
      CHECK_EQ(truncate(arena.c_str(), size), 0);
      CHECK_EQ(error_of(arena), std::string());
    }
    CHECK_EQ(truncate(arena.c_str(), (off_t{16} << 30) + 1), 0);
    CHECK_EQ(error_of(arena), std::string(": larger than any arena"));
    const std::string empty = folder.path() + "/empty";
    write_file(empty, "");
    CHECK_EQ(truncate(empty.c_str(), off_t{16} << 30), 0);
    CHECK_EQ(error_of(empty), std::string(": not a commlens arena"));
    CHECK(most_memory() - before < 100 << 10);  // KiB
  });
}

TEST(a_file_is_read_where_its_data_is) {
  const Folder folder;
  const std::string path = folder.path() + "/sparse";
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  constexpr off_t at[] = {0, 1 << 20, (3 << 20) + 5};
  for (const off_t from : at) CHECK_EQ(pwrite(file, "data", 4, from), 4);
  CHECK_EQ(ftruncate(file, 4 << 20), 0);
  arena::Input input;
  CHECK(input.open(path) && input.load(4 << 20));
  const arena::Content& content = input.content();
  CHECK_EQ(content.size, 4u << 20);
  CHECK(content.data_bytes() >= 12 && content.data_bytes() <= 4u << 20);
  std::uint64_t filled = 0;
  for (std::uint64_t i = 0; i < content.size; ++i) {
    if (content.bytes[i] == 0) continue;
    ++filled;
    CHECK_EQ(content.next_data(i), i);
  }
  CHECK_EQ(filled, 12u);
  for (const off_t from : at) CHECK_EQ(std::string(content.bytes + from, 4), std::string("data"));
  input.unload();
  CHECK(content.bytes == nullptr && input.size() == 4u << 20);
  close(file);
}

}  // namespace commlens
