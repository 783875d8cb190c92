// SPDX-License-Identifier: Apache-2.0
// Arenas that are cut off, flipped in places, or something else altogether.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/arena/arena.h"
#include "core/collect/package.h"
#include "core/hot/thread.h"
#include "core/recover/read.h"
#include "core/state/threads.h"
#include "tests/unit/arena/killed_process.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/rank.h"

namespace commlens {

TEST(a_file_that_is_cut_off_anywhere_is_read_as_far_as_it_goes_or_refused) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    for (int i = 0; i < 100; ++i) add_comm(registry, 1, {Identity(3000 + i), 's', {1, 3}});
    begin_slices(1000);
    for (std::uint32_t k = 0; k < 600; ++k) {
      this_thread().current.since = 1000 + k * first_slice_width / 4;
      record(this_thread(), make_key(world + k % 100, 3, 1, 0), k % 7 + 1, 100, 8, 0);
    }
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  arena::Reader whole;
  CHECK(whole.read(file));
  CHECK_EQ(whole.notice(), std::string());
  CHECK_EQ(calls_of(whole), 600u);
  std::uint64_t least = 600;
  bool was_read = true;
  for (auto left = std::filesystem::file_size(file); left > 0;
       left -= std::min<std::uintmax_t>(left, check::is_slow ? 1511 : 101)) {
    std::filesystem::resize_file(file, left);
    arena::Reader reader;
    if (!reader.read(file)) {
      CHECK(!reader.error.empty());
      was_read = false;
      continue;
    }
    CHECK(was_read);  // with less there is not more
    CHECK(calls_of(reader) <= least);
    least = calls_of(reader);
    const bool is_whole = least == 600 && reader.notice().empty();
    CHECK(is_whole || reader.notice().find("cut short: " + std::to_string(left) + " of ") == 0);
    CHECK_EQ(merged({packed(reader.counted(), 0, {})}).ranks.size(), 1u);
  }
  CHECK(!was_read);
}

TEST(what_is_flipped_is_left_out_and_nothing_else) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    std::uint32_t last = world;
    for (int i = 0; i < 20; ++i) last = add_comm(registry, 1, {Identity(3000 + i), 's', {1, 3}, 0, last});
    begin_slices(1000);
    for (std::uint32_t k = 0; k < 600; ++k) {
      this_thread().current.since = 1000 + k * first_slice_width / 4;
      record(this_thread(), make_key(world + k % 20, 3, 1, 0), k % 7 + 1, 100, 8, 0);
    }
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t random = 7;
  for (int i = 0; i < (check::is_slow ? 150 : 2000); ++i) {
    random = mixed(random + 1);
    // The first page is nearly empty: more of its beginning.
    const std::size_t at = i % 10 == 0 ? random % sizeof(arena::Header) : random % bytes.size();
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ (1 << (random >> 40) % 8));
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes[at] = before;
    arena::Reader reader;
    if (!reader.read(file)) {
      CHECK(reader.error.find(file) == 0 && reader.error.size() > file.size() + 10);
      continue;
    }
    const Profile profile = merged({packed(reader.counted(), 0, {})});
    CHECK_EQ(profile.ranks.size(), 1u);
    // No communicator is made up, and of those of the program only what a bit hit may be missing.
    CHECK(profile.comms.size() <= 24 && (profile.comms.size() >= 22 || !reader.notice().empty()));
  }
}

TEST(what_is_flipped_in_regions_is_read_without_harm) {
  const Folder folder;
  live(folder.path(), [](Registry&) { live_in_regions(); });
  const std::string file = folder.file();
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  // Where the content of the new kinds of segments stands, and a run that flips bits there only.
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t at = arena::header_bytes; at + sizeof(arena::SegmentHead) <= bytes.size();) {
    std::uint64_t size = 0;
    arena::Kind kind{};
    std::memcpy(&kind, bytes.data() + at + offsetof(arena::SegmentHead, kind), sizeof kind);
    std::memcpy(&size, bytes.data() + at + offsetof(arena::SegmentHead, bytes), sizeof size);
    if (kind == arena::Kind::none && size == 0) break;
    const bool is_new = kind >= arena::Kind::stack;
    // Of arrays the first cells are in use.
    if (is_new || kind == arena::Kind::journal || kind == arena::Kind::slices)
      places.emplace_back(at, std::min<std::size_t>(sizeof(arena::SegmentHead) + size, is_new ? 3000 : 1500));
    at += sizeof(arena::SegmentHead) + size;
  }
  CHECK(places.size() >= 2 * 4 + 1);
  std::uint64_t random = 11;
  int read = 0;
  for (int i = 0; i < (check::is_slow ? 300 : 4000); ++i) {
    std::string bad = bytes;
    for (int n = 0; n < (i % 4 == 0 ? 3 : 1); ++n) {
      random = mixed(random + 1);
      const auto& [from, size] = places[random % places.size()];
      const std::size_t at = from + (random >> 16) % size;
      bad[at] = static_cast<char>(i % 8 == 0 ? random >> 48
                                             : static_cast<std::uint64_t>(bad[at]) ^ (1u << (random >> 40) % 8));
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    arena::Reader reader;
    if (!reader.read(file)) {
      CHECK(reader.error.find(file) == 0);
      continue;
    }
    ++read;
    const Profile profile = merged({packed(reader.counted(), 0, {})});
    CHECK_EQ(profile.ranks.size(), 1u);
    CHECK(profile.regions.size() <= 40'000);
    for (const Profile::RegionRow& row : profile.region_rows)
      CHECK(row.nested <= row.time && row.mpi <= row.time && row.within.region < profile.regions.size());
    for (const Profile::Slice& slice : profile.slices)
      CHECK(slice.op != region_op || (slice.comm < profile.regions.size() && slice.time < Ns{1} << 62));
    for (const Profile::MetricRow& row : profile.metric_rows)
      CHECK(row.metric > 0 && row.metric < profile.metrics.size());
  }
  CHECK(read > (check::is_slow ? 225 : 3000));
}

TEST(one_garbled_entry_of_the_journal_does_not_hide_the_next) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    for (int i = 0; i < 3; ++i) {
      Made made{Identity(3000 + i), 's', {1, 3}};
      count(add_comm(registry, 1, made), 3, 10);
    }
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  arena::Reader whole;
  CHECK(whole.read(file));
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  // The identity of the second one, seven bits a byte, stands in its entry only.
  WireWriter identity;
  identity.number(3001);
  const std::size_t at = bytes.find(std::string(identity.bytes().begin(), identity.bytes().end()));
  CHECK(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 2);
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  arena::Reader reader;
  CHECK(reader.read(file));
  CHECK(reader.notice().find("damaged") == 0);
  CHECK_EQ(calls_of(reader), 30u);
  const Profile profile = merged({packed(reader.counted(), 0, {})});
  CHECK_EQ(calls_in(profile, "s1.1"), 10u);
  CHECK_EQ(calls_in(profile, "s1.2"), 0u);
  CHECK_EQ(calls_in(profile, "s1.3"), 10u);
  CHECK_EQ(calls_in(profile, "-"), 10u);
}

TEST(another_version_is_refused) {
  const Folder folder;
  live(folder.path(), [](Registry&) { raise(SIGKILL); });
  const std::string file = folder.file();
  for (const std::size_t at : {offsetof(arena::Header, version), offsetof(arena::Header, layout)}) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(at)).put(99);
    arena::Reader reader;
    CHECK(!reader.read(file));
    CHECK_EQ(reader.error, file + ": written by another version of commlens; only that version can read it");
  }
}

TEST(garbage_is_refused_or_read_without_harm) {
  const Folder folder;
  live(folder.path(), [](Registry& registry) {
    add_comm(registry, 1, {2000, 's', {1, 3}});
    count(world, 3, 10);
    raise(SIGKILL);
  });
  const std::string file = folder.file();
  std::ifstream in(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t random = 1;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (int n = 0; n < 8; ++n) {
      random = mixed(random + 1);
      // Most of what has meaning stands in the first pages.
      bad[random % (n < 6 ? 16384 : bad.size())] = static_cast<char>(random >> 32);
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    arena::Reader reader;
    if (reader.read(file)) CHECK(!packed(reader.counted(), 0, {}).empty());
  }
  for (const char* content : {"", "SQLite format 3", "CLARENA\n"}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    arena::Reader reader;
    CHECK(!reader.read(file));
    CHECK(reader.error.find(file) == 0);
  }
}

}  // namespace commlens
