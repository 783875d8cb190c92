// SPDX-License-Identifier: Apache-2.0
#include "core/job/family_rules.h"

#include <string>

#include "tests/unit/check.h"

namespace commlens {

static const std::string head = "commlens-tune 1\nfamily a world MPI_Comm_split ab+0x1f\n";

TEST(a_family_has_the_variables_of_its_rules) {
  const FamilyRules rules =
      family_rules_in(head + "# text\n\nfamily b a MPI_Comm_dup ab+0x20\nset b coll_tuned_alltoall_algorithm 3\n");
  CHECK_EQ(rules.problem, std::string());
  CHECK_EQ(rules.families.size(), 2u);
  CHECK_EQ(rules.families[1].parent, 0);
  CHECK_EQ(rules.families[1].offset, 32u);
  CHECK_EQ(rules.families[1].variables[0].value, 3);
}

TEST(a_damaged_file_has_a_problem_and_no_families) {
  for (const char* const end :
       {"", "set a coll_tuned_alltoall_algorithm", "set b coll_tuned_alltoall_algorithm 1", "set a btl_eager_limit 1",
        "set a coll_tuned_alltoall_algorithm -1", "set a coll_tuned_alltoall_algorithm 99999999999",
        "family a world MPI_Comm_dup ab+0x1", "family b c MPI_Comm_dup ab+0x1", "family b world MPI_Comm_idup ab+0x1",
        "family b world MPI_Comm_split ab+0x1f", "family b world MPI_Comm_dup +0x1", "family b world MPI_Comm_dup ab",
        "\x01\x02\xff", "family"}) {
    const FamilyRules rules = family_rules_in(head + end);
    CHECK(!rules.problem.empty());
    CHECK(rules.families.empty());
  }
  CHECK(!family_rules_in("").problem.empty());
  CHECK(!family_rules_in(std::string(3, '\0')).problem.empty());
  CHECK(!family_rules_of("/").problem.empty());
}

}  // namespace commlens
