// SPDX-License-Identifier: Apache-2.0
#include "core/base/share.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/check.h"

namespace commlens {

TEST(a_share_is_a_number_from_0_to_1) {
  CHECK_EQ(billionths("0"), 0);
  CHECK_EQ(billionths("1"), whole_share);
  CHECK_EQ(billionths("1.000"), whole_share);
  CHECK_EQ(billionths("0.1"), 100'000'000);
  CHECK_EQ(billionths("0.25"), 250'000'000);
  CHECK_EQ(billionths("0.123456789"), 123'456'789);
  CHECK_EQ(billionths("0."), 0);
  for (const char* const wrong : {"", ".5", "-0.1", "2", "1.1", "1.000000001", "0,5", "0.1234567890", "0.5x", "50%",
                                  "1e-3", "00.5", " 0.5", "0.-1", "nan"}) {
    CHECK_EQ(billionths(wrong), -1);
  }
}

// As batch systems number jobs: one after the other, alone or with a name behind.
std::size_t sampled_of(std::size_t jobs, const std::string& behind, std::int64_t share) {
  std::size_t n = 0;
  for (std::size_t job = 1; job <= jobs; ++job) n += is_sampled(std::to_string(job) + behind, share) ? 1 : 0;
  return n;
}

TEST(the_share_of_consecutive_jobs_is_the_wanted_one) {
  constexpr std::size_t jobs = 100'000;
  for (const char* const behind : {"", ".server.example.org", "[1]"}) {
    for (const double share : {0.001, 0.1, 0.5, 0.9}) {
      const double expected = share * jobs, deviation = std::sqrt(expected * (1 - share));
      const auto found = static_cast<double>(sampled_of(jobs, behind, static_cast<std::int64_t>(share * whole_share)));
      CHECK(std::abs(found - expected) < 4 * deviation);
    }
    CHECK_EQ(sampled_of(jobs, behind, 0), 0u);
    CHECK_EQ(sampled_of(jobs, behind, whole_share), jobs);
  }
}

TEST(the_decision_about_a_job_does_not_depend_on_its_neighbours) {
  constexpr std::size_t jobs = 100'000;
  std::size_t both = 0;
  for (std::size_t job = 1; job <= jobs; ++job) {
    both += is_sampled(std::to_string(job), whole_share / 10) && is_sampled(std::to_string(job + 1), whole_share / 10);
  }
  CHECK(both > 880 && both < 1120);  // 1,000 expected, 32 the standard deviation
}

TEST(a_larger_share_only_adds_jobs) {
  for (int job = 0; job < 10'000; ++job) {
    const std::string id = std::to_string(job);
    bool was = false;
    for (std::int64_t share = 0; share <= whole_share; share += whole_share / 20) {
      const bool is = is_sampled(id, share);
      CHECK(is || !was);
      was = is;
    }
    CHECK(was);
  }
}

// The ranks of a job may run different versions of commlens, and an administrator may repeat the decision elsewhere.
TEST(the_decision_is_the_same_for_ever) {
  std::vector<int> tenth;
  for (int job = 1; job <= 60; ++job) {
    if (is_sampled(std::to_string(job), whole_share / 10)) tenth.push_back(job);
  }
  std::string text;
  for (const int job : tenth) text += std::to_string(job) + " ";
  CHECK_EQ(text, std::string("1 5 13 15 16 33 42 44 51 "));
}

}  // namespace commlens
