// SPDX-License-Identifier: Apache-2.0
#include "core/collect/write.h"

#include <new>

#include "core/base/say.h"
#include "core/out/findings.h"
#include "core/profile/profile.h"

namespace commlens {

const char kept_in_arenas[] = "The counters are kept on the nodes; run 'commlens recover' there";

bool is_unwanted(const Destination& destination) { return out::target_of(destination.name) == out::Target::nothing; }

void say_unwanted(const Destination& destination) {
  if (destination.quiet) return;
  const std::string& name = destination.name;  // /dev/null or a link to it
  say("no profile is written: %s is /dev/null", name == "/dev/null" ? "COMMLENS_OUTPUT" : name.c_str());
}

void say_stored(const Destination& destination, const out::Totals& totals, const out::Stored& stored,
                const std::string& finding) {
  for (const auto& [kind, oddity] : totals.oddities) {
    const std::string others = oddity.ranks == 1 ? "" : " (and " + std::to_string(oddity.ranks - 1) + " more ranks)";
    say("rank %d%s: %s", oddity.rank, others.c_str(), oddity.text.c_str());
  }
  if (!stored.error.empty()) {
    say("%s; the profile is in %s", stored.error.c_str(), stored.path.c_str());
    return;
  }
  if (destination.quiet) return;
  say("profile of %llu rank%s in %s", static_cast<unsigned long long>(totals.ranks), totals.ranks == 1 ? "" : "s",
      stored.path.c_str());
  if (totals.app == 0) return;
  const double share = static_cast<double>(totals.mpi) / static_cast<double>(totals.app);
  say("%s of the time in MPI%s%s", out::share_text(share).c_str(), finding.empty() ? "" : ": ", finding.c_str());
}

bool write_finished(const Destination& destination, int ranks, const Profile& profile, const out::Totals& totals,
                    out::Phases phases) {
  if (destination.name.empty()) throw std::bad_alloc();
  phases.agreed = phases.clock();
  const out::Meta meta = out::with_totals(destination.meta, totals, ranks);
  std::string finding;
  const out::Stored stored =
      out::store(profile, meta, destination.name, phases, destination.mode, destination.quiet ? nullptr : &finding);
  if (stored.path.empty()) {
    say("no profile: %s. %s", stored.error.c_str(),
        destination.kept.empty() ? kept_in_arenas : destination.kept.c_str());
    return false;
  }
  say_stored(destination, totals, stored, finding);
  return true;
}

bool write_file(const Destination& destination, int ranks, Profile& profile, out::Phases phases) {
  if (is_unwanted(destination)) {
    say_unwanted(destination);
    return true;
  }
  profile.world_size = ranks;
  profile.settle(profile.dictionary.catalogue(), profile.dictionary.size());
  const Ticks settled = phases.clock();
  profile.split_samples();
  phases.split = phases.clock() - settled;
  return write_finished(destination, ranks, profile, out::Totals(profile), phases);
}

}  // namespace commlens
