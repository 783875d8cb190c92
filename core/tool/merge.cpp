// SPDX-License-Identifier: Apache-2.0
#include "core/tool/merge.h"

#include <algorithm>
#include <exception>
#include <set>

#include "core/collect/package.h"
#include "core/out/utf8.h"

namespace commlens {
namespace {

using Say = std::function<void(const std::string&)>;

std::string no_memory_for(const arena::Reader& reader) {
  return "rank " + std::to_string(reader.job().rank) + ": no memory for its data";
}

bool add(const arena::Reader& reader, const std::vector<char>& package, Profile& profile, const Say& say) {
  try {
    if (profile.add(package.data(), package.size())) return true;
    say("rank " + std::to_string(reader.job().rank) + ": its data cannot be read");
  } catch (const std::exception&) {  // bad_alloc
    say(no_memory_for(reader));
  }
  return false;
}

// What every rank sends when a profile is collected; empty where there is no memory for it.
std::vector<std::vector<char>> packages_of(const Readers& readers, const Say& say) {
  SliceRows slices;
  std::uint64_t cells = 0;
  for (const auto& reader : readers) {
    try {
      slices.add(SliceRows(reader->counted()));
    } catch (const std::exception&) {
      continue;  // it will be said when it is packed
    }
    cells += reader->counted().cells.size();
  }
  const SlicePlan plan = slices.within(slice_rows_for(cells));
  std::vector<std::vector<char>> packages(readers.size());
  for (std::size_t i = 0; i < readers.size(); ++i) {
    Counted& counted = readers[i]->counted();
    counted.facts.world = readers[i]->job().launch;
    try {
      packages[i] = packed(counted, 0, plan);
    } catch (const std::exception&) {  // bad_alloc
      say(no_memory_for(*readers[i]));
    }
  }
  return packages;
}

}  // namespace

Profile profile_of(const Readers& readers, const Say& say) {
  std::vector<std::vector<char>> packages = packages_of(readers, say);
  while (true) {
    Profile profile;
    profile.world_size = readers.front()->job().size;
    // What cannot be added may be there in part: then all are added anew, without it.
    std::size_t i = 0;
    while (i < readers.size() && (packages[i].empty() || add(*readers[i], packages[i], profile, say))) ++i;
    if (i == readers.size()) {
      profile.finish();
      return profile;
    }
    packages[i].clear();
  }
}

// What an arena says of keys that are known only now, or says twice, does not count.
out::Meta meta_of(const journal::JobEntry& job, const Profile& profile) {
  const out::Meta all = out::with_totals(job.meta, out::Totals(profile), job.size);
  out::Meta meta;
  std::set<std::string> keys;
  for (auto entry = all.rbegin(); entry != all.rend(); ++entry) {
    if (keys.insert(out::utf8(entry->first)).second) meta.push_back(*entry);
  }
  std::reverse(meta.begin(), meta.end());
  return meta;
}

}  // namespace commlens
