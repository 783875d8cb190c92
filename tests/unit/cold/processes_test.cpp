// SPDX-License-Identifier: Apache-2.0
#include "core/cold/processes.h"

#include <sys/prctl.h>
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

}  // namespace commlens
