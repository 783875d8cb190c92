// SPDX-License-Identifier: Apache-2.0
#include "core/process/processes.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/check.h"

namespace commlens {

TEST(a_process_has_a_name_and_a_parent) {
  char before[16];
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, "a) b (c");
  const ProcessFacts facts = facts_of(getpid());
  prctl(PR_SET_NAME, before);
  CHECK_EQ(facts.name, std::string("a) b (c"));
  CHECK_EQ(facts.parent, getppid());
}

TEST(a_process_that_is_not_there_has_no_parent) { CHECK_EQ(facts_of(-1).parent, -1); }

TEST(what_stands_behind_an_option_of_another_process) {
  char words[][16] = {"sh", "-c", "kill -STOP $$", "--port", "node 1:17", "--empty", "", "--last"};
  char* arguments[] = {words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], nullptr};
  char* environment[] = {nullptr};
  pid_t child = -1;
  CHECK_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environment), 0);
  waitpid(child, nullptr, WUNTRACED);  // the kernel shows the words only when the program has begun
  CHECK_EQ(argument_of(child, "--port"), std::string("node 1:17"));
  CHECK_EQ(argument_of(child, "--empty"), std::string());
  CHECK_EQ(argument_of(child, "--last"), std::string());
  CHECK_EQ(argument_of(child, "--por"), std::string());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_EQ(argument_of(child, "--port"), std::string());
}

}  // namespace commlens
