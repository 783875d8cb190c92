// SPDX-License-Identifier: Apache-2.0
#include "core/job/crash_copy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "core/arena/arena.h"
#include "core/job/job.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

// Lets a process of its own open its arena in folder "arenas", copy it to a place as rank 3, and live until `life`
// returns or it is killed.  Returns its wait status.
int live_with_copies_in(const PlaceOfCopies& place, const Folder& folder, const std::function<void()>& life) {
  fs::create_directory(folder.path() + "/arenas");
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    for (const int signal : {SIGTERM, SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);  // sanitizers have handlers
    open_arena(folder.path() + "/arenas");
    enable_crash_copies(place, 3);
    life();
    _exit(check::failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// The same, with copies in folder "copies".
int live_with_copies(const Folder& folder, const std::function<void()>& life) {
  PlaceOfCopies place;
  place.folder = folder.path() + "/copies";
  return live_with_copies_in(place, folder, life);
}

bool has_files(const std::string& directory) { return fs::exists(directory) && !fs::is_empty(directory); }

std::string copy_of(const Folder& folder, pid_t process) {
  return folder.path() + "/copies/rank3." + std::to_string(process) + ".arena";
}

}  // namespace

TEST(a_fatal_signal_leaves_a_copy_and_ends_the_process) {
  for (const int signal : {SIGTERM, SIGSEGV, SIGABRT}) {
    const Folder folder;
    const int status = live_with_copies(folder, [signal] { raise(signal); });
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), signal);
    CHECK(has_files(folder.path() + "/copies"));
    CHECK(!has_files(folder.path() + "/arenas"));
  }
}

// Rank 0 has made other folders, or none.
TEST(a_rank_makes_the_folders_around_its_copy) {
  for (const bool may_make : {true, false}) {
    const Folder folder;
    const std::string root = folder.path() + "/root";
    if (may_make) fs::create_directory(root);
    PlaceOfCopies place;
    place.folder = root + "/user//node/copies";
    place.root = root.size() + 1;
    place.elsewhere = folder.path() + "/elsewhere";
    const int status = live_with_copies_in(place, folder, [] { raise(SIGTERM); });
    CHECK_EQ(WTERMSIG(status), SIGTERM);
    CHECK(has_files(may_make ? place.folder : place.elsewhere));
    CHECK_EQ(fs::exists(root), may_make);  // nothing is made above
    CHECK(!has_files(folder.path() + "/arenas"));
  }
}

TEST(a_handler_of_the_application_stays) {
  const Folder folder;
  fs::create_directory(folder.path() + "/arenas");
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    std::signal(SIGTERM, [](int) { _exit(42); });
    open_arena(folder.path() + "/arenas");
    PlaceOfCopies place;
    place.folder = folder.path() + "/copies";
    enable_crash_copies(place, 3);
    raise(SIGTERM);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(WEXITSTATUS(status), 42);
  CHECK(!fs::exists(folder.path() + "/copies"));
}

TEST(a_flush_leaves_a_copy_that_goes_with_the_arena) {
  const Folder folder;
  const int status = live_with_copies(folder, [&folder] {
    CHECK(flush_arena());
    CHECK(fs::exists(copy_of(folder, getpid())));
    CHECK(flush_arena());  // replaces the first
    CHECK(has_files(folder.path() + "/arenas"));
    remove_arena();
    CHECK(!fs::exists(folder.path() + "/copies"));
    CHECK(!has_files(folder.path() + "/arenas"));
  });
  CHECK_EQ(status, 0);
}

TEST(a_flush_to_a_folder_of_the_application_stays) {
  const Folder folder;
  const int status = live_with_copies(folder, [&folder] {
    std::snprintf(job.directory, sizeof job.directory, "%s", folder.path().c_str());
    CHECK(flush_arena_to("mine"));  // below the working directory at the start
    remove_arena();
    CHECK(has_files(folder.path() + "/mine"));
  });
  CHECK_EQ(status, 0);
}

TEST(the_last_copy_is_made_once_and_takes_the_place_of_the_arena) {
  const Folder folder;
  const int status = live_with_copies(folder, [&folder] {
    const auto aborted = static_cast<unsigned>(arena::State::aborted);
    CHECK_EQ(std::string(make_last_copy(aborted)), copy_of(folder, getpid()));
    CHECK(!has_files(folder.path() + "/arenas"));
    CHECK_EQ(arena::own_header()->state, aborted);
    const std::string first = content_of(copy_of(folder, getpid()));
    make_last_copy(static_cast<unsigned>(arena::State::exited));
    CHECK(content_of(copy_of(folder, getpid())) == first);
  });
  CHECK_EQ(status, 0);
}

TEST(counters_that_are_in_a_profile_are_not_copied) {
  const Folder folder;
  const int status = live_with_copies(folder, [] {
    remove_arena();
    raise(SIGTERM);
  });
  CHECK_EQ(WTERMSIG(status), SIGTERM);
  CHECK(!has_files(folder.path() + "/copies"));
}

TEST(a_forked_child_makes_no_copy) {
  const Folder folder;
  const int status = live_with_copies(folder, [] {
    const pid_t child = fork();
    if (child == 0) _exit(flush_arena() || *make_last_copy(0) != '\0' ? 1 : 0);
    int ended = -1;
    waitpid(child, &ended, 0);
    CHECK_EQ(ended, 0);
  });
  CHECK_EQ(status, 0);
  CHECK(!fs::exists(folder.path() + "/copies"));
}

}  // namespace commlens
