// SPDX-License-Identifier: Apache-2.0
#include "core/out/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/check.h"

std::string directory_to_vanish;  // before the next file is opened; empty: none

namespace {
int sync_error = 0;  // of fsync(); 0: it works
int syncs = 0;
unsigned file_system = NFS_SUPER_MAGIC;  // of all files
}  // namespace

// openat(), as the linker calls it (--wrap, CMakeLists.txt).
extern "C" int __real_openat(int folder, const char* name, int flags, ...);
extern "C" int __wrap_openat(int folder, const char* name, int flags, unsigned mode) {
  if (!directory_to_vanish.empty()) rmdir(directory_to_vanish.c_str());
  directory_to_vanish.clear();
  return __real_openat(folder, name, flags, mode);
}

// fsync(), as the linker calls it (--wrap, CMakeLists.txt).
extern "C" int __real_fsync(int file);
extern "C" int __wrap_fsync(int file) {
  ++syncs;
  if (sync_error == 0) return __real_fsync(file);
  errno = sync_error;
  return -1;
}

// fstatfs(), as the linker calls it (--wrap, CMakeLists.txt).
extern "C" int __wrap_fstatfs(int, struct statfs* facts) {
  facts->f_type = file_system;
  return 0;
}

namespace commlens::out {
namespace {

namespace fs = std::filesystem;

constexpr unsigned char text[] = "content";
constexpr Content content{text, 7};

// An empty directory, $TMPDIR in it, and a umask that takes nothing away.
class TemporaryFolder {
 public:
  TemporaryFolder() : umask_(umask(0)) {
    char path[] = "/tmp/commlens-files-XXXXXX";
    root_ = mkdtemp(path) != nullptr ? path : "/nonexistent";
    fs::create_directory(root_ + "/tmp");
    setenv("TMPDIR", (root_ + "/tmp").c_str(), 1);
  }
  ~TemporaryFolder() {
    umask(umask_);
    unsetenv("TMPDIR");
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return root_ + "/" + name; }

 private:
  mode_t umask_;
  std::string root_;
};

unsigned mode_of(const std::string& path) {
  struct stat facts{};
  return lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777u : 0;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t entries(const std::string& path) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path)) ++n;
  return n;
}

}  // namespace

TEST(an_error_of_fsync_that_loses_nothing_loses_nothing) {
  for (const int error : {EPERM, EINVAL, EROFS, ENOSYS, ENOTSUP, EACCES, EBADF}) {
    const TemporaryFolder place;
    sync_error = error;
    const Stored stored = write_file(content, place / "a.db", usual_mode, nullptr);
    sync_error = 0;
    CHECK_EQ(stored.path, place / "a.db");
    CHECK_EQ(content_of(place / "a.db"), std::string("content"));
  }
  for (const int error : {EIO, ENOSPC, EDQUOT, ESTALE}) {
    const TemporaryFolder place;
    sync_error = error;
    const Stored stored = write_file(content, place / "a.db", usual_mode, nullptr);
    sync_error = 0;
    CHECK(stored.path.empty() && !stored.error.empty());
    CHECK_EQ(entries(place / ""), 1u);
  }
}

TEST(waits_for_the_disk_only_where_a_file_system_takes_what_it_may_lose) {
  const TemporaryFolder place;
  const auto syncs_on = [&place](unsigned type) {
    file_system = type;
    syncs = 0;
    const std::string name = place / std::to_string(type);
    CHECK_EQ(write_file(content, name, usual_mode, nullptr).path, name);
    CHECK_EQ(content_of(name), std::string("content"));
    return syncs;
  };
  for (const unsigned local :
       {EXT4_SUPER_MAGIC, 0x58465342 /* XFS */, static_cast<int>(BTRFS_SUPER_MAGIC), TMPFS_MAGIC})
    CHECK_EQ(syncs_on(local), 0);
  for (const unsigned other : {NFS_SUPER_MAGIC, 0x0BD00BD0 /* Lustre */, OVERLAYFS_SUPER_MAGIC, 1})
    CHECK_EQ(syncs_on(other), 1);
  file_system = NFS_SUPER_MAGIC;
}

TEST(no_file_or_directory_can_be_written_by_others) {
  const TemporaryFolder place;
  std::string error;
  CHECK_EQ(write_file(content, place / "a.db", usual_mode, nullptr).path, place / "a.db");
  CHECK_EQ(mode_of(place / "a.db"), 0644u);
  CHECK_EQ(make_directory(place / "a.db", usual_mode, error), place / "a.commlens");
  CHECK_EQ(mode_of(place / "a.commlens"), 0755u);
  CHECK_EQ(write_part(content, place / "a.commlens", "x.db", usual_mode, nullptr).path, place / "a.commlens/x.db");
  CHECK_EQ(mode_of(place / "a.commlens/x.db"), 0644u);
  write_part(content, place / "new.commlens", "x.db", usual_mode, nullptr);
  CHECK_EQ(mode_of(place / "new.commlens"), 0755u);
}

TEST(a_mode_holds_for_files_and_directories) {
  const TemporaryFolder place;
  std::string error;
  write_file(content, place / "a.db", 0600, nullptr);
  CHECK_EQ(mode_of(place / "a.db"), 0600u);
  make_directory(place / "a.db", 0640, error);
  CHECK_EQ(mode_of(place / "a.commlens"), 0750u);
  make_directory(place / "b.db", 0600, error);
  CHECK_EQ(mode_of(place / "b.commlens"), 0700u);
  // The rank that made the directory was told the mode, others may not have been.
  write_part(content, place / "b.commlens", "x.db", usual_mode, nullptr);
  CHECK_EQ(mode_of(place / "b.commlens/x.db"), 0600u);
}

TEST(what_is_no_file_is_neither_written_nor_numbered) {
  const TemporaryFolder place;
  CHECK_EQ(mkfifo((place / "a.db").c_str(), 0600), 0);
  CHECK(target_of(place / "a.db") == Target::other);
  CHECK(target_of("/dev/zero") == Target::other);
  CHECK(target_of("/dev/null") == Target::nothing);
  CHECK_EQ(symlink("/dev/null", (place / "link").c_str()), 0);
  CHECK(target_of(place / "link") == Target::nothing);
  CHECK(target_of(place / "b.db") == Target::free);
  CHECK(target_of(place / "") == Target::free);
  const Stored stored = write_file(content, place / "a.db", usual_mode, nullptr);
  CHECK(stored.path.empty());
  CHECK_EQ(stored.error, "cannot write " + (place / "a.db") + ": it is neither a file nor a folder");
  std::string error;
  CHECK_EQ(make_directory(place / "a.db", usual_mode, error), place / "tmp/a.commlens");
  CHECK_EQ(error, stored.error);
  CHECK_EQ(entries(place / ""), 3u);
}

TEST(a_part_goes_into_no_folder_that_is_not_ours) {
  const TemporaryFolder place;
  fs::create_directory(place / "open");
  CHECK_EQ(chmod((place / "open").c_str(), 01777), 0);
  fs::create_directory(place / "mine");
  fs::create_directory_symlink(place / "mine", place / "link");
  fs::create_directory(place / "theirs");
  const bool has_theirs = chown((place / "theirs").c_str(), 65534, 65534) == 0;  // only root can give one away
  for (const char* name : {"open", "link", "theirs"}) {
    if (name == std::string("theirs") && !has_theirs) continue;
    const Stored stored = write_part(content, place / name, "x.db", usual_mode, nullptr);
    if (!stored.path.empty() || stored.error.empty()) check::fail(__FILE__, __LINE__, name);
  }
  CHECK_EQ(entries(place / "mine"), 0u);
}

TEST(a_part_is_written_though_another_process_removes_the_directory) {
  const TemporaryFolder place;
  directory_to_vanish = place / "a.commlens";
  const Stored stored = write_part(content, place / "a.commlens", "x.db", usual_mode, nullptr);
  CHECK_EQ(stored.error, std::string());
  CHECK_EQ(content_of(place / "a.commlens/x.db"), std::string("content"));
  CHECK(directory_to_vanish.empty());
}

TEST(a_part_for_a_folder_that_cannot_be_made_gives_up) {
  const TemporaryFolder place;
  const Stored stored = write_part(content, place / "gone/a.commlens", "x.db", usual_mode, nullptr);
  CHECK_EQ(stored.error, "cannot write " + (place / "gone/a.commlens/x.db") + ": No such file or directory");
}

TEST(a_part_follows_no_link_and_takes_no_file) {
  const TemporaryFolder place;
  std::ofstream(place / "precious") << "precious";
  for (const bool is_link : {true, false}) {
    fs::create_directory(place / "folder");
    const std::string temporary = place / "folder/x.db.tmp";
    is_link ? fs::create_symlink(place / "precious", temporary) : fs::create_hard_link(place / "precious", temporary);
    CHECK(write_part(content, place / "folder", "x.db", usual_mode, nullptr).path.empty());
    CHECK_EQ(content_of(place / "precious"), std::string("precious"));
    fs::remove_all(place / "folder");
  }
}

TEST(folders_are_made_below_the_root_with_the_permissions_of_the_profile) {
  const TemporaryFolder place;
  const std::string root = place / "";
  CHECK_EQ(make_folders(root + "alice/2026-11/x.db", root.size(), 0600), std::string());
  CHECK_EQ(mode_of(place / "alice"), 0700u);
  CHECK_EQ(mode_of(place / "alice/2026-11"), 0700u);
  CHECK(!fs::exists(place / "alice/2026-11/x.db"));
  CHECK_EQ(make_folders(root + "alice/2026-12//x.db", root.size(), 0640), std::string());  // some are there
  CHECK_EQ(mode_of(place / "alice"), 0700u);
  CHECK_EQ(mode_of(place / "alice/2026-12"), 0750u);
  umask(027);
  CHECK_EQ(make_folders(root + "bob/x.db", root.size(), usual_mode), std::string());
  CHECK_EQ(mode_of(place / "bob"), 0750u);
}

TEST(no_folder_is_made_above_the_root_or_in_place_of_a_file) {
  const TemporaryFolder place;
  const std::string root = place / "gone/";
  CHECK_EQ(make_folders(root + "alice/x.db", root.size(), 0600),
           "cannot create folder " + root + "alice: No such file or directory");
  CHECK(!fs::exists(place / "gone"));
  std::ofstream(place / "alice") << "a file";
  const std::string top = place / "";
  CHECK_EQ(make_folders(top + "alice/x.db", top.size(), 0600), "cannot create folder " + top + "alice: File exists");
  CHECK_EQ(make_folders(top + "alice/2026/x.db", top.size(), 0600),
           "cannot create folder " + top + "alice: File exists");
  CHECK_EQ(content_of(place / "alice"), std::string("a file"));
}

TEST(a_folder_that_another_user_has_put_there_is_not_used) {
  const TemporaryFolder place;
  const std::string root = place / "root/";
  fs::create_directory(root);
  fs::create_directory(root + "alice");
  fs::create_directory(root + "own");
  fs::create_symlink(root + "own", root + "link");
  if (chown((root + "alice").c_str(), 65534, 65534) != 0) return;  // only root can give one away
  for (const mode_t open : {01777, 0775}) {
    chmod(root.c_str(), open);
    CHECK_EQ(make_folders(root + "alice/x.db", root.size(), 0600),
             "folder " + root + "alice belongs to another user, who may have put it there");
    CHECK_EQ(make_folders(root + "link/x.db", root.size(), 0600), std::string());
  }
  chmod(root.c_str(), 0755);  // only its owner could have put it there
  CHECK_EQ(make_folders(root + "alice/x.db", root.size(), 0600), std::string());
}

}  // namespace commlens::out
