// SPDX-License-Identifier: Apache-2.0
#include "core/process/settings.h"

#include <string>
#include <vector>

#include "tests/unit/check.h"

namespace commlens {
namespace {

std::string text_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& s : settings) text += s.source + ":" + s.name + "=" + s.value + ";";
  return text;
}

}  // namespace

TEST(labels_are_words_with_a_name_and_a_value) {
  std::vector<std::string> wrong;
  CHECK_EQ(text_of(labels_in("  alg=linear\trun=3 empty= a=b=c", wrong)),
           std::string("label:alg=linear;label:run=3;label:empty=;label:a=b=c;"));
  CHECK(wrong.empty());
  CHECK(labels_in("", wrong).empty());
  CHECK_EQ(text_of(labels_in("word =x ok=1", wrong)), std::string("label:ok=1;"));
  CHECK_EQ(wrong.size(), 2u);
  CHECK_EQ(text_of(labels_in("a=1 b=2 a=1 a=3", wrong)), std::string("label:a=3;label:b=2;"));
}

TEST(the_variables_that_are_listed_are_stored_by_name_and_none_else) {
  const char* const environment[] = {"UCX_TLS=sm",
                                     "HOME=/home/someone",
                                     "OMPI_MCA_coll_tuned_alltoallv_algorithm=2",
                                     "OMPI_MCA_orte_hnp_uri=1.0;tcp://192.0.2.2:34163",
                                     "OMPI_MCA_orte_precondition_transports=504acf-3b07",
                                     "OMPI_MCA_orte_ess_node_rank=1",
                                     "OMP_NUM_THREADS=",
                                     "OMP",
                                     "XOMP_NUM_THREADS=3",
                                     "SLURM_NTASKS=4",
                                     "SLURM_PROCID=3",
                                     nullptr};
  CHECK_EQ(text_of(variables_in(environment)),
           std::string("environment:OMPI_MCA_coll_tuned_alltoallv_algorithm=2;environment:OMP_NUM_THREADS=;"
                       "environment:SLURM_NTASKS=4;environment:UCX_TLS=sm;"));
  CHECK(variables_in(nullptr).empty());
  const char* const twice[] = {"UCX_TLS=sm", "UCX_TLS=tcp", nullptr};
  CHECK_EQ(text_of(variables_in(twice)), std::string("environment:UCX_TLS=sm;"));
}

TEST(what_looks_like_a_secret_is_masked) {
  const char* const environment[] = {"FI_PROVIDER_TOKEN=abc", "UCX_REMOTE=https://user:word@host/x", nullptr};
  CHECK_EQ(text_of(variables_in(environment)),
           std::string("environment:FI_PROVIDER_TOKEN=***;environment:UCX_REMOTE=https://user:***@host/x;"));
}

TEST(the_executable_of_this_process_is_found) {
  const std::vector<Setting> found = program_and_machine();
  CHECK(!found.empty() && found[0].name == "executable" && found[0].value.find("process_test") != std::string::npos);
  bool has_build_id = false;
  for (const Setting& s : found) has_build_id = has_build_id || (s.name == "build_id" && s.value.size() >= 16);
  CHECK(has_build_id);
}

TEST(a_control_variable_is_read_from_its_line_and_a_possible_secret_is_masked) {
  CHECK_EQ(text_of({control_variable_in("osc=^ucx,pt2pt (file (/etc/openmpi/params.conf:70))")}),
           "control:osc=^ucx,pt2pt;");
  CHECK_EQ(text_of({control_variable_in("a=b (c) (d=e) (set)")}), "control:a=b (c) (d=e);");
  CHECK_EQ(text_of({control_variable_in("empty= (set)")}), "control:empty=;");
  CHECK_EQ(text_of({control_variable_in("auth_token=abc (set)")}), "control:auth_token=***;");
  for (const char* line : {"", "a", "a=b", "a (b=c)"}) CHECK(control_variable_in(line).name.empty());
}

TEST(settings_are_sent_whole_up_to_a_limit_and_garbled_ones_are_refused) {
  std::vector<Setting> settings{{"label", "a", "1"}, {"environment", "long", std::string(5000, 'x')}};
  std::vector<Setting> found;
  CHECK(read_settings(written(settings), found));
  CHECK_EQ(found.size(), 2u);
  CHECK(found.size() == 2 && found[0].value == "1" && found[1].value.size() == most_setting_bytes);

  settings.assign(100, {"environment", "name", std::string(4000, 'x')});
  found.clear();
  const std::string text = written(settings);
  CHECK(text.size() < most_settings_bytes + 2000);
  CHECK(read_settings(text, found));
  CHECK(found.size() > 10 && found.size() < 17);

  found.clear();
  CHECK(!read_settings(text.substr(0, text.size() - 1), found));
  found.clear();
  CHECK(read_settings("", found) && found.empty());
}

}  // namespace commlens
