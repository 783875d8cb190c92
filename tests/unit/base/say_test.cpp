// SPDX-License-Identifier: Apache-2.0
#include "core/base/say.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "tests/unit/check.h"

namespace commlens {
namespace {

// What `speak` writes to stderr, one string a write.
template <class Speak>
std::vector<std::string> heard(Speak speak) {
  int ends[2];
  std::vector<std::string> writes;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return writes;  // keeps writes apart
  const int real = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  speak();
  dup2(real, STDERR_FILENO);
  close(real);
  close(ends[1]);
  char buffer[8192];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    writes.emplace_back(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  return writes;
}

}  // namespace

TEST(a_line_is_one_write_with_our_name_before_it) {
  const std::vector<std::string> writes = heard([] {
    say("profile of %d ranks in %s", 4, "a.db");
    say("and %s", "more");
  });
  CHECK_EQ(writes.size(), 2u);
  CHECK(writes.at(0) == "commlens: profile of 4 ranks in a.db\n");
  CHECK(writes.at(1) == "commlens: and more\n");
}

TEST(a_line_that_is_too_long_is_cut_and_still_ends) {
  const std::vector<std::string> writes = heard([] { say("%s", std::string(5000, 'x').c_str()); });
  CHECK_EQ(writes.size(), 1u);
  CHECK(writes.at(0).size() > 1000 && writes.at(0).size() < 5000);
  CHECK_EQ(writes.at(0).back(), '\n');
  CHECK_EQ(writes.at(0)[writes.at(0).size() - 2], 'x');
}

TEST(what_a_terminal_would_act_on_is_not_said) {
  const auto said = [](const char* text) { return heard([text] { say("<%s>", text); }).at(0); };
  CHECK_EQ(said("a\x1b[2J\nb\x7f\tc"), std::string("commlens: <a?[2J?b??c>\n"));
  CHECK_EQ(said("\xc2\x9b"
                "31m \x9b"),
           std::string("commlens: <??31m ?>\n"));  // C1
  CHECK_EQ(said("x\xe2\x80\xae"
                "bd.y"),
           std::string("commlens: <x???bd.y>\n"));                                 // right to left
  CHECK_EQ(said("\xc0\x8a \xe2\x82 \xf5"), std::string("commlens: <?? ?? ?>\n"));  // no UTF-8
  for (const char* text : {"gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac \xf0\x9f\x98\x80", "a b"}) {
    CHECK_EQ(said(text), "commlens: <" + std::string(text) + ">\n");
  }
}

TEST(saying_something_leaves_errno_alone) {
  int after_saying = 0;
  heard([&] {
    errno = 4711;
    say("x");
    after_saying = errno;
  });
  CHECK_EQ(after_saying, 4711);
  const int real = dup(STDERR_FILENO);
  errno = 4711;
  close(STDERR_FILENO);
  say("nobody hears this");
  const int after = errno;
  dup2(real, STDERR_FILENO);
  close(real);
  CHECK_EQ(after, 4711);
}

TEST(nobody_reading_stderr_any_more_does_not_end_the_application) {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    errno = 4711;
    say("nobody hears this");
    _exit(errno == 4711 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST(a_file_the_application_opens_in_place_of_stderr_is_not_written_to) {
  char path[] = "/tmp/commlens-say-XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  const pid_t child = fork();
  if (child == 0) {
    remember_stderr();
    dup2(file, STDERR_FILENO);
    say("this is the application's file");
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(lseek(file, 0, SEEK_END), 0);
  close(file);
  unlink(path);
}

TEST(the_rank_is_what_the_launcher_says) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "PALS_RANKID"}) {
    unsetenv(name);
  }
  CHECK_EQ(launcher_rank(), -1);
  setenv("SLURM_PROCID", "12", 1);
  CHECK_EQ(launcher_rank(), 12);
  setenv("PMI_RANK", "3", 1);
  CHECK_EQ(launcher_rank(), 3);
  setenv("PMI_RANK", "none", 1);
  CHECK_EQ(launcher_rank(), 12);
  unsetenv("PMI_RANK");
  unsetenv("SLURM_PROCID");
}

}  // namespace commlens
