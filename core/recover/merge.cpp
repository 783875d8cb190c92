// SPDX-License-Identifier: Apache-2.0
#include "core/recover/merge.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <vector>

#include "core/collect/package.h"
#include "core/out/utf8.h"

namespace commlens {
namespace {

using Say = std::function<void(const std::string&)>;

SlicePlan plan_for(const Readers& readers) {
  SliceRows slices;
  std::uint64_t cells = 0;
  for (const auto& reader : readers) {
    try {
      slices.add(SliceRows(reader->counted()));
    } catch (const std::exception&) {
      continue;  // add() reports it
    }
    cells += reader->counted().cells.size();
  }
  return slices.within(slice_rows_for(cells));
}

// Returns the worlds on which the ranks of launches have agreed that left parts, by launch.
std::map<std::uint64_t, Identity> worlds_of(const Readers& readers) {
  std::map<std::uint64_t, Identity> worlds;
  for (const auto& reader : readers) {
    if (!reader->package().empty()) worlds[reader->job().launch] = reader->counted().facts.world;
  }
  return worlds;
}

// Adds the package that this rank would have sent, or has put into its part.  If that fails, reports it and returns
// false; a part of the package may have been added then.
bool add(arena::Reader& reader, const SlicePlan& plan, const SampleLimits& limits, Profile& profile, const Say& say) {
  const char* reason = "its data cannot be read";
  try {
    const bool is_part = !reader.package().empty();
    const std::vector<char> bytes = is_part ? reader.package() : packed(reader.counted(), 0, plan, limits);
    if (profile.add(bytes.data(), bytes.size())) return true;
  } catch (const std::exception&) {  // bad_alloc
    reason = "no memory for its data";
  }
  say("rank " + std::to_string(reader.job().rank) + ": " + reason);
  return false;
}

}  // namespace

Profile profile_of(const Readers& readers, const Say& say) {
  const SlicePlan plan = plan_for(readers);
  std::size_t most_strata = 0, most_channels = 0;
  for (const auto& reader : readers) {
    most_strata = std::max(most_strata, reader->counted().samples.size());
    most_channels = std::max(most_channels, reader->counted().messages.size());
  }
  const SampleLimits limits = limits_for(readers.size(), most_strata, most_channels);
  const std::map<std::uint64_t, Identity> worlds = worlds_of(readers);
  for (const auto& reader : readers) {
    const std::uint64_t launch = reader->job().launch;
    const auto agreed = worlds.find(launch);
    reader->counted().facts.world = agreed == worlds.end() ? launch : agreed->second;
  }
  std::set<const arena::Reader*> left_out;
  while (true) {
    Profile profile;
    profile.world_size = readers.front()->job().size;
    const auto cannot = [&](const auto& reader) {
      return left_out.count(reader.get()) == 0 && !add(*reader, plan, limits, profile, say);
    };
    const auto bad = std::find_if(readers.begin(), readers.end(), cannot);
    if (bad == readers.end()) {
      profile.finish();
      return profile;
    }
    left_out.insert(bad->get());  // add all others to a new profile
  }
}

// Keys that are known only now replace those of the same name in the arena.  Of keys that occur twice, the last one
// counts.
out::Meta meta_of(const journal::JobEntry& job, const Profile& profile) {
  out::Meta all = out::with_totals(job.meta, out::Totals(profile), job.size);
  all.emplace_back("open_calls", "counted");
  all.emplace_back("full_paths", "");  // an arena does not tell
  out::Meta meta;
  std::set<std::string> keys;
  for (auto entry = all.rbegin(); entry != all.rend(); ++entry) {
    if (keys.insert(out::utf8(entry->first)).second) meta.push_back(*entry);
  }
  std::reverse(meta.begin(), meta.end());
  return meta;
}

}  // namespace commlens
