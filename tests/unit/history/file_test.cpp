// SPDX-License-Identifier: Apache-2.0
#include "core/history/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/history/difference.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"

namespace commlens::history {
namespace {

// A snapshot in which one word of each of two processes has grown by `n`.
Snapshot snapshot_of(Ns time, std::uint64_t n) {
  Snapshot snapshot;
  snapshot.time = time;
  for (const std::uint32_t process : {0u, 7u}) {
    DifferenceWriter writer;
    writer.add({process, {0, n}});
    snapshot.parts.push_back({process, time + 1, true, writer.take()});
  }
  return snapshot;
}

struct Read {
  std::vector<Ns> times;
  std::uint64_t sum = 0;  // of what the differences of process 7 add
};

Read read(const std::string& path) {
  Read all;
  HistoryReader reader;
  CHECK(reader.open(path));
  for (Snapshot snapshot; reader.next(snapshot);) {
    all.times.push_back(snapshot.time);
    CHECK_EQ(snapshot.parts.size(), std::size_t{2});
    CHECK_EQ(snapshot.parts[1].time, snapshot.time + 1);
    CHECK(snapshot.parts[1].is_running);
    Line line;
    DifferenceReader difference(snapshot.parts[1].difference);
    CHECK(difference.next(line));
    CHECK_EQ(line.number, std::uint64_t{7});
    all.sum += line.words[1];
  }
  return all;
}

std::string error_of(const std::string& path) {
  HistoryReader reader;
  CHECK(!reader.open(path));
  return reader.error.substr(path.size());
}

}  // namespace

TEST(snapshots_are_read_as_they_were_added) {
  const Folder folder;
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/copies", "n.history"));
  std::vector<Ns> times;
  for (Ns i = 1; i <= 10; ++i) {
    CHECK(writer.add(snapshot_of(i * 100, i)));
    times.push_back(i * 100);
    CHECK(read(folder.path() + "/copies/n.history").times == times);
  }
  struct stat facts;
  CHECK_EQ(stat((folder.path() + "/copies/n.history").c_str(), &facts), 0);
  CHECK_EQ(facts.st_mode & 0777, 0600u);
}

TEST(the_older_half_is_merged_when_there_are_too_many) {
  for (const std::uint64_t most :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{8}, std::uint64_t{64}}) {
    const Folder folder;
    HistoryWriter writer(most);
    CHECK(writer.create(folder.path() + "/x", "n.history"));
    std::uint64_t sum = 0;
    for (Ns i = 1; i <= 200; ++i) {
      CHECK(writer.add(snapshot_of(i, i * 3)));
      sum += i * 3;
    }
    const Read all = read(folder.path() + "/x/n.history");
    CHECK(all.times.size() <= std::max<std::uint64_t>(most, 2));
    CHECK(all.times.size() >= std::max<std::uint64_t>(most / 2, 1));
    CHECK_EQ(all.sum, sum);
    CHECK_EQ(all.times.back(), Ns{200});
    for (std::size_t i = 2; i < all.times.size(); ++i) {  // further apart, the longer ago
      CHECK(all.times[i] - all.times[i - 1] <= all.times[i - 1] - all.times[i - 2]);
    }
    CHECK_EQ(std::distance(std::filesystem::directory_iterator(folder.path() + "/x"), {}), 1);
  }
}

TEST(a_record_that_is_mostly_a_hole_costs_no_memory) {
  const Folder folder;
  const std::string path = folder.path() + "/x/n.history";
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  CHECK(writer.add(snapshot_of(1, 1)));
  const std::string whole = content_of(path);
  constexpr std::uint64_t terabytes = std::uint64_t{8} << 40;
  std::string head(16, '\0');
  std::memcpy(head.data(), &terabytes, sizeof terabytes);
  write_file(path, whole + head);
  std::error_code refused;
  std::filesystem::resize_file(path, whole.size() + head.size() + terabytes, refused);
  if (refused) std::filesystem::resize_file(path, std::uint64_t{1} << 40);  // the most that ext4 has may be less
  CHECK_EQ(read(path).times.size(), std::size_t{1});
}

TEST(what_is_before_a_damage_is_read) {
  const Folder folder;
  const std::string path = folder.path() + "/x/n.history";
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  std::vector<std::size_t> ends;
  for (Ns i = 1; i <= 4; ++i) {
    CHECK(writer.add(snapshot_of(i, i)));
    ends.push_back(std::filesystem::file_size(path));
  }
  const std::string whole = content_of(path);
  constexpr std::size_t head = 24;
  const auto whole_until = [&](std::size_t at) {
    return static_cast<std::size_t>(
        std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= at; }));
  };
  for (std::size_t n = head; n < whole.size(); ++n) {
    write_file(path, whole.substr(0, n));
    CHECK_EQ(read(path).times.size(), whole_until(n));
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x10);
    write_file(path, changed);
    CHECK_EQ(read(path).times.size(), whole_until(n));
  }
}

TEST(only_an_own_history_of_this_version_is_opened) {
  const Folder folder;
  const std::string path = folder.path() + "/x/n.history";
  HistoryWriter writer(64);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  const std::string whole = content_of(path);
  CHECK_EQ(error_of(folder.path() + "/none"), std::string(": No such file or directory"));
  write_file(path, whole.substr(0, 10));
  CHECK_EQ(error_of(path), std::string(": too short for a history"));
  write_file(path, std::string(100, 'x'));
  CHECK_EQ(error_of(path), std::string(": not a history of commlens"));
  for (const std::size_t at : {std::size_t{8}, std::size_t{12}, std::size_t{16}}) {
    std::string changed = whole;
    ++changed[at];
    write_file(path, changed);
    CHECK_EQ(error_of(path), std::string(": written by another version of commlens; only that version can read it"));
  }
  write_file(path, whole);
  CHECK_EQ(chmod(path.c_str(), 0620), 0);
  CHECK_EQ(error_of(path), std::string(": others may write to it"));
  CHECK_EQ(symlink(path.c_str(), (folder.path() + "/link").c_str()), 0);
  CHECK_EQ(error_of(folder.path() + "/link"), std::string(": a symbolic link"));
}

TEST(a_full_file_system_loses_no_snapshot) {
  in_own_process([] {
    const Folder folder;
    const std::string path = folder.path() + "/x/n.history";
    std::signal(SIGXFSZ, SIG_IGN);
    HistoryWriter writer(4);
    CHECK(writer.create(folder.path() + "/x", "n.history"));
    CHECK(writer.add(snapshot_of(1, 1)));
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit full{std::filesystem::file_size(path) + 20, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    CHECK(!writer.add(snapshot_of(2, 2)));
    CHECK_EQ(errno, EFBIG);
    CHECK_EQ(read(path).times.size(), std::size_t{1});
    setrlimit(RLIMIT_FSIZE, &before);
    for (Ns i = 2; i <= 4; ++i) CHECK(writer.add(snapshot_of(i, i)));
    full.rlim_cur = std::filesystem::file_size(path) + 20;
    setrlimit(RLIMIT_FSIZE, &full);
    CHECK(!writer.add(snapshot_of(5, 5)));
    CHECK_EQ(read(path).times.size(), std::size_t{4});
    CHECK_EQ(std::distance(std::filesystem::directory_iterator(folder.path() + "/x"), {}), 1);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(writer.add(snapshot_of(5, 5)));
    CHECK_EQ(read(path).sum, std::uint64_t{1 + 2 + 3 + 4 + 5});
  });
}

TEST(a_snapshot_is_added_though_the_older_ones_cannot_be_merged) {
  const Folder folder;
  const std::string path = folder.path() + "/x/n.history", unfinished = path + ".merge";
  HistoryWriter writer(4);
  CHECK(writer.create(folder.path() + "/x", "n.history"));
  std::filesystem::create_directory(unfinished);  // no file can have that name
  write_file(unfinished + "/any", "x");
  for (Ns i = 1; i <= 7; ++i) CHECK(writer.add(snapshot_of(i, i)));
  CHECK_EQ(read(path).times.size(), std::size_t{7});
  std::filesystem::remove_all(unfinished);
  CHECK(writer.add(snapshot_of(8, 8)));
  CHECK(read(path).times.size() < 8);
  CHECK_EQ(read(path).times.back(), Ns{8});
  CHECK_EQ(read(path).sum, std::uint64_t{36});
}

TEST(a_file_that_could_not_be_begun_is_begun_by_the_first_snapshot) {
  in_own_process([] {
    const Folder folder;
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{10, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    HistoryWriter writer(4);
    CHECK(!writer.create(folder.path() + "/x", "n.history"));
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(writer.add(snapshot_of(1, 5)));
    CHECK_EQ(read(folder.path() + "/x/n.history").sum, std::uint64_t{5});
  });
}

}  // namespace commlens::history
