// SPDX-License-Identifier: Apache-2.0
#include "core/job/selection.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/base/patterns.h"
#include "core/base/share.h"
#include "core/process/processes.h"
#include "generated/launchers.h"

namespace commlens {
namespace {

std::string first_value(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

// Returns a text that all processes of a launch have, also on other nodes, and other launches do not have; empty: there
// is none.  Slurm's number of the job comes first, because it also holds for all launches of the job.
std::string key_of_all() {
  std::string key = first_value(COMMLENS_VARIABLES_EVERYWHERE);
  if (key.empty()) key = first_value(COMMLENS_VARIABLES_SHARED);
  // The address of Hydra's launcher, in the arguments of its proxies.
  return key.empty() ? argument_of(launcher_process(), "--control-port") : key;
}

// Other batch systems give their number to the script of the job, and launchers need not pass it on to other nodes.
std::string shared_key() {
  std::string key = key_of_all();
  return key.empty() ? job_id() : key;
}

bool is_skipped(const std::string& list) {
  if (list.empty()) return false;
  for (const Pattern& pattern : patterns_in(list)) {
    if (!pattern.leaves_out && matches(pattern.text.c_str(), program_invocation_short_name)) return true;
  }
  return false;
}

}  // namespace

std::string job_id() { return first_value(COMMLENS_VARIABLES_JOB_ID); }

pid_t launcher_process() {
  for (pid_t p = getppid(); p > 1;) {
    const ProcessFacts facts = facts_of(p);
    if (facts.name.compare(0, 6, "hydra_") == 0) return p;
    p = facts.parent;
  }
  return getppid();
}

bool is_selected(const Options& options) {
  if (is_skipped(options.text(Option::skip))) return false;
  const std::int64_t share = billionths(options.text(Option::sample));
  if (share < 0 || share >= whole_share) return true;
  if (share == 0) return false;
  const std::string key = shared_key();
  return key.empty() || is_sampled(key, share);
}

unsigned long patience(const Options& options) {
  constexpr unsigned long patience_with_absent_ranks = 60;
  const unsigned long wanted = options.number(Option::patience);
  if (options.is_set(Option::patience)) return wanted;
  const std::int64_t share = billionths(options.text(Option::sample));
  const bool is_uncertain = share >= 0 && share < whole_share && key_of_all().empty();
  const bool may_lack_ranks = is_uncertain || !options.text(Option::skip).empty();
  return may_lack_ranks ? std::min(wanted, patience_with_absent_ranks) : wanted;
}

}  // namespace commlens
