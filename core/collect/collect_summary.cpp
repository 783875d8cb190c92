// SPDX-License-Identifier: Apache-2.0
#include "core/collect/collect_summary.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <utility>

#include "core/base/say.h"
#include "core/collect/agree.h"
#include "core/profile/profile.h"
#include "core/profile/summary.h"

namespace commlens {
namespace {

// Adds up the summaries of the subtrees.  Returns false if communication failed.
bool sum_up(Group& group, Summary& summary, bool& complete) {
  const Tree tree = tree_of(group);
  std::vector<char> bytes;
  for (const int child : tree.children) {
    const TransferResult passed = take(group, child, bytes);
    if (passed == TransferResult::broken) return false;
    try {
      complete = passed == TransferResult::yes && summary.add(bytes) && complete;
    } catch (const std::exception&) {
      complete = false;
    }
  }
  if (tree.parent < 0) return true;
  try {
    bytes = summary.packed();
  } catch (const std::exception&) {
    bytes.clear();
  }
  return put(group, tree.parent, bytes) != TransferResult::broken;
}

// On rank 0, after all summaries were added: writes the profile.
bool write_summary(const Destination& destination, int ranks, Profile& profile, const Summary& summary,
                   out::Phases phases) {
  profile.is_summary = true;
  profile.ranks.clear();
  profile.rows.clear();
  profile.region_rows.clear();
  profile.loop_rows.clear();
  profile.loop_bins.clear();
  profile.metric_rows.clear();
  profile.series_rows.clear();
  profile.threads.clear();
  profile.thread_cells.clear();
  profile.thread_regions.clear();
  profile.event_rows.clear();
  profile.datatype_rows.clear();
  profile.finish();
  profile.lines = summary.lines(profile);
  for (Catalogue::KeyFacts& key : profile.keys) key.calls = key.bytes_sent = key.bytes_received = key.noncontiguous = 0;
  out::Totals totals(profile);
  totals.nodes = summary.nodes();
  totals.oddities = summary.oddities();
  if (const Spread* const app = summary.of_run(Profile::Counter::app); app != nullptr) {
    totals.elapsed = app->max;
    totals.ranks = app->ranks;
  }
  return write_finished(destination, ranks, profile, totals, phases);
}

}  // namespace

bool collect_summary(Group& group, const Destination& destination, out::Phases phases, std::vector<char> own,
                     SummaryParts& parts) {
  auto& [profile, summary, of_all, answer] = parts;
  profile.world_size = group.size();
  profile.dictionary.fold();
  of_all.fold();
  bool complete = true;
  try {
    complete = profile.add(own.data(), own.size());
    of_all = profile.dictionary;
  } catch (const std::exception&) {
    complete = false;
  }
  own = {};
  // Ranks must agree on families before they add up the counters of a family.
  const AgreementResult agreed = agree(group, of_all);
  if (agreed == AgreementResult::broken) return false;
  std::vector<char> settled;
  try {
    if (group.rank() == 0) settled = of_all.settled_sites();
  } catch (const std::exception&) {
    complete = false;
  }
  if (!from_root(group, settled)) return false;
  try {
    complete = profile.dictionary.settle_sites(settled) && complete;
    summary = Summary(profile);
  } catch (const std::exception&) {
    complete = false;
  }
  if (!sum_up(group, summary, complete)) return false;
  phases.gathered = phases.clock();
  profile.dictionary = std::move(of_all);

  std::uint64_t is_whole = complete && agreed == AgreementResult::yes ? 1 : 0;
  std::array<std::uint64_t, 1> all{is_whole};
  const auto least = [](auto& sum, const auto& one) { sum[0] = std::min(sum[0], one[0]); };
  if (!everywhere(group, all, least)) return false;
  if (group.rank() == 0) {
    bool is_stored = false;
    try {
      if (all[0] == 0) say("the data of some ranks is missing: out of memory. %s", kept_in_arenas);
      is_stored = write_summary(destination, group.size(), profile, summary, phases);
    } catch (const std::exception& e) {
      say("no profile: %s", e.what());
    }
    answer[0] = is_stored && all[0] != 0 ? 1 : 0;
  }
  if (!from_root(group, answer)) return false;
  return !answer.empty() && answer[0] != 0;
}

}  // namespace commlens
