// SPDX-License-Identifier: Apache-2.0
#include "core/job/selection.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/patterns.h"
#include "core/base/share.h"
#include "core/process/processes.h"
#include "generated/launchers.h"

namespace commlens {
namespace {

// Returns a text that all processes of this job share, also on other nodes, and other jobs do not have; empty: there is
// none.
std::string shared_key() {
  std::string id = job_id();
  if (!id.empty()) return id;
  for (const char* name : COMMLENS_VARIABLES_SHARED) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  // The address of Hydra's launcher, in the arguments of its proxies.
  return argument_of(launcher_process(), "--control-port");
}

bool is_skipped(const std::string& list) {
  if (list.empty()) return false;
  for (const Pattern& pattern : patterns_in(list)) {
    if (!pattern.leaves_out && matches(pattern.text.c_str(), program_invocation_short_name)) return true;
  }
  return false;
}

}  // namespace

std::string job_id() {
  for (const char* name : COMMLENS_VARIABLES_JOB_ID) {
    const char* const id = std::getenv(name);
    if (id != nullptr && *id != '\0') return id;
  }
  return {};
}

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

}  // namespace commlens
