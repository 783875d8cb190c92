// SPDX-License-Identifier: Apache-2.0
#include "core/collect/write.h"

#include <new>

#include "core/base/say.h"
#include "core/profile/profile.h"

namespace commlens {

const char kept_in_arenas[] = "The counters are kept on the nodes; run 'commlens recover' there";

bool is_unwanted(const Destination& destination) { return out::target_of(destination.name) == out::Target::nothing; }

void say_unwanted(const Destination& destination) {
  if (destination.quiet) return;
  const std::string& name = destination.name;  // /dev/null or a link to it
  say("no profile is written: %s is /dev/null", name == "/dev/null" ? "COMMLENS_OUTPUT" : name.c_str());
}

void say_stored(const Destination& destination, const Profile::Oddities& oddities, std::uint64_t ranks,
                const std::string& path, const std::string& error) {
  for (const auto& [kind, oddity] : oddities) {
    const std::string others = oddity.ranks == 1 ? "" : " (and " + std::to_string(oddity.ranks - 1) + " more ranks)";
    say("rank %d%s: %s", oddity.rank, others.c_str(), oddity.text.c_str());
  }
  if (!error.empty()) {
    say("%s; the profile is in %s", error.c_str(), path.c_str());
  } else if (!destination.quiet) {
    say("profile of %llu rank%s in %s", static_cast<unsigned long long>(ranks), ranks == 1 ? "" : "s", path.c_str());
  }
}

bool write_finished(const Destination& destination, int ranks, const Profile& profile, const out::Totals& totals,
                    out::Phases phases) {
  if (destination.name.empty()) throw std::bad_alloc();
  phases.agreed = phases.clock();
  const out::Meta meta = out::with_totals(destination.meta, totals, ranks);
  const out::Stored stored = out::store(profile, meta, destination.name, phases, destination.mode);
  if (stored.path.empty()) {
    say("no profile: %s. %s", stored.error.c_str(),
        destination.kept.empty() ? kept_in_arenas : destination.kept.c_str());
    return false;
  }
  say_stored(destination, totals.oddities, totals.ranks, stored.path, stored.error);
  return true;
}

bool write_file(const Destination& destination, int ranks, Profile& profile, out::Phases phases) {
  if (is_unwanted(destination)) {
    say_unwanted(destination);
    return true;
  }
  profile.world_size = ranks;
  profile.finish();
  return write_finished(destination, ranks, profile, out::Totals(profile), phases);
}

}  // namespace commlens
