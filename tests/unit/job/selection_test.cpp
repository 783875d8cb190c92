// SPDX-License-Identifier: Apache-2.0
#include "core/job/selection.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "core/base/share.h"
#include "generated/launchers.h"
#include "tests/unit/check.h"

extern char** environ;

namespace commlens {
namespace {

// An environment in which no launcher, batch system or option has set a variable.
class Environment {
 public:
  Environment() {
    clear();
    set("COMMLENS_CONFIG", "/dev/null");
  }
  ~Environment() { clear(); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  Environment& set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    return *this;
  }

 private:
  static void clear() {
    for (const char* const name : COMMLENS_VARIABLES_JOB_ID) unsetenv(name);
    for (const char* const name : COMMLENS_VARIABLES_SHARED) unsetenv(name);
    for (const char* const name : {"COMMLENS_CONFIG", "COMMLENS_SAMPLE", "COMMLENS_SKIP", "COMMLENS_PATIENCE"})
      unsetenv(name);
  }
};

bool is_selected_now() { return is_selected(Options::read()); }

}  // namespace

TEST(without_options_every_process_is_selected) {
  const Environment none;
  CHECK(is_selected_now());
}

TEST(a_program_that_is_to_be_skipped_is_not_selected) {
  Environment environment;
  // The name of this program is job_test.
  for (const char* const list : {"job_test", "job*", "a,*_test,b", "*"}) {
    environment.set("COMMLENS_SKIP", list);
    CHECK(!is_selected_now());
  }
  for (const char* const list : {"", "job", "ob_test", "job_tes", "!job_test", ",", "/job_test"}) {
    environment.set("COMMLENS_SKIP", list);
    CHECK(is_selected_now());
  }
}

TEST(slurms_number_of_the_job_decides_alone) {
  Environment environment;
  environment.set("COMMLENS_SAMPLE", "0.5");
  int selected = 0;
  for (int job = 1; job <= 100; ++job) {
    const std::string id = std::to_string(job);
    environment.set("SLURM_JOB_ID", id);
    const bool is = is_sampled(id, whole_share / 2);
    CHECK_EQ(is_selected_now(), is);
    environment.set("PMIX_NAMESPACE", "step." + id + ".0").set("PBS_JOBID", "7");  // of a step, of another system
    CHECK_EQ(is_selected_now(), is);
    selected += is ? 1 : 0;
  }
  CHECK(selected > 30 && selected < 70);
}

// The ranks on other nodes may lack it.
TEST(the_number_of_another_batch_system_decides_nothing_if_the_launch_has_one) {
  Environment environment;
  environment.set("COMMLENS_SAMPLE", "0.5");
  for (int job = 1; job <= 20; ++job) {
    const std::string id = std::to_string(job) + ".server", launch = "prterun-node-" + std::to_string(7 * job);
    environment.set("PBS_JOBID", id).set("PMIX_NAMESPACE", "");
    CHECK_EQ(is_selected_now(), is_sampled(id, whole_share / 2));
    environment.set("PMIX_NAMESPACE", launch);
    CHECK_EQ(is_selected_now(), is_sampled(launch, whole_share / 2));
    environment.set("PBS_JOBID", "");
    CHECK_EQ(is_selected_now(), is_sampled(launch, whole_share / 2));
  }
}

TEST(a_rank_is_less_patient_where_others_may_be_switched_off) {
  Environment environment;
  const auto patience_now = [] { return patience(Options::read()); };
  CHECK_EQ(patience_now(), 3600U);
  environment.set("COMMLENS_SAMPLE", "0.5");
  CHECK_EQ(patience_now(), 60U);
  environment.set("PBS_JOBID", "1");
  CHECK_EQ(patience_now(), 60U);
  environment.set("PMIX_NAMESPACE", "prterun-node-1");  // all ranks have it
  CHECK_EQ(patience_now(), 3600U);
  environment.set("COMMLENS_SKIP", "other");
  CHECK_EQ(patience_now(), 60U);
  for (const char* const wanted : {"3600", "30", "100"}) {
    environment.set("COMMLENS_PATIENCE", wanted);
    CHECK_EQ(patience_now(), std::strtoul(wanted, nullptr, 10));
  }
  environment.set("COMMLENS_PATIENCE", "soon");  // invalid
  CHECK_EQ(patience_now(), 60U);
}

TEST(without_a_batch_system_the_number_of_the_launch_decides) {
  for (const char* const name : COMMLENS_VARIABLES_SHARED) {
    Environment environment;
    environment.set("COMMLENS_SAMPLE", "0.5");
    for (int launch = 1; launch <= 20; ++launch) {
      const std::string id = "prterun-node-" + std::to_string(launch);
      environment.set(name, id);
      CHECK_EQ(is_selected_now(), is_sampled(id, whole_share / 2));
    }
  }
}

// Its ranks on other nodes could not decide the same.
TEST(a_job_that_nothing_distinguishes_is_measured) {
  Environment environment;
  environment.set("COMMLENS_SAMPLE", "0.000000001");
  CHECK(is_selected_now());
  environment.set("SLURM_JOB_ID", "");  // set, but empty
  CHECK(is_selected_now());
}

TEST(no_job_and_every_job_need_no_number) {
  Environment environment;
  environment.set("COMMLENS_SAMPLE", "0");
  CHECK(!is_selected_now());
  environment.set("COMMLENS_SAMPLE", "1").set("SLURM_JOB_ID", "1");
  CHECK(is_selected_now());
  environment.set("COMMLENS_SAMPLE", "2");  // invalid
  CHECK(is_selected_now());
}

}  // namespace commlens
