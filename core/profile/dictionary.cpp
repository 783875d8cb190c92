// SPDX-License-Identifier: Apache-2.0
#include "core/profile/dictionary.h"

#include <algorithm>
#include <set>

#include "core/profile/parents.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

Identity identity_of(const std::string& text) { return commlens::identity_of(text.data(), text.size()); }

// caller: identity of its caller; 0: unknown.
Identity identity_of(const SiteFacts& site, Identity caller) {
  const Identity place = combine(combine(identity_of(site.module), identity_of(site.build_id)), site.offset);
  return caller == 0 ? place : combine(place, caller);
}

Identity identity_of(const MetricFacts& metric) { return combine(identity_of(metric.name), identity_of(metric.unit)); }

template <class... Numbers>
Identity identity_from(Identity first, Numbers... others) {
  ((first = combine(first, static_cast<Identity>(others))), ...);
  return first;
}

// Kinds of entries; part of each identity, so that entries of different kinds never have the same one.
enum : Identity {
  comm_entry = 1,
  site_entry,
  key_entry,
  text_entry,
  region_entry,
  metric_entry,
  tag_entry,
  datatype_entry
};

auto place(const CommDraft& d) { return std::make_tuple(d.second_side, d.rank_in_comm, d.world_rank); }

}  // namespace

Dictionary::Dictionary()
    : drafts_(1),
      by_identity_{{0, 0}},
      sites_(1),
      site_identities_{0},
      by_site_{{0, 0}},
      regions_(1),
      by_region_{{0, 0}},
      metrics_(1),
      by_metric_{{0, 0}},
      datatypes_(1),
      by_datatype_{{0, 0}} {}

void Dictionary::add_rank(int rank) { add_block({rank, rank + 1}); }

void Dictionary::add_block(const Block& block) {
  if (block_.first == block_.end) {
    block_ = block;
    return;
  }
  block_.first = std::min(block_.first, block.first);
  block_.end = std::max(block_.end, block.end);
}

std::uint32_t Dictionary::site(SiteFacts site) {
  const Identity identity = identity_of(site, site_identities_[site.caller]);
  const auto [entry, is_new] = by_site_.try_emplace(identity, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(std::move(site));
    site_identities_.push_back(identity);
  }
  return entry->second;
}

std::uint32_t Dictionary::region(std::uint32_t parent, RegionKind kind, std::string name) {
  const Identity identity = identity_from(regions_[parent].identity, kind, identity_of(name));
  const auto [entry, is_new] = by_region_.try_emplace(identity, static_cast<std::uint32_t>(regions_.size()));
  if (is_new) regions_.push_back({identity, static_cast<int>(parent), kind, std::move(name)});
  return entry->second;
}

std::uint32_t Dictionary::region_of(Identity region) const {
  const auto found = by_region_.find(region);
  return found == by_region_.end() ? 0 : found->second;
}

std::uint32_t Dictionary::metric(MetricFacts metric) {
  const Identity identity = identity_of(metric);
  const auto [entry, is_new] = by_metric_.try_emplace(identity, static_cast<std::uint32_t>(metrics_.size()));
  if (is_new) metrics_.push_back(std::move(metric));
  return entry->second;
}

std::uint32_t Dictionary::datatype(DatatypeFacts datatype) {
  const auto [entry, is_new] =
      by_datatype_.try_emplace(datatype.identity, static_cast<std::uint32_t>(datatypes_.size()));
  if (is_new) datatypes_.push_back(std::move(datatype));
  return entry->second;
}

void Dictionary::tag(std::uint32_t region, std::string name, std::string value) {
  tags_.emplace(regions_[region].identity, std::move(name), std::move(value));
}

std::uint32_t Dictionary::draft_index(Identity identity) {
  const auto [entry, is_new] = by_identity_.try_emplace(identity, static_cast<std::uint32_t>(drafts_.size()));
  if (is_new) drafts_.emplace_back().facts.comm.identity = identity;
  return entry->second;
}

// For communicators that share a row: clears the facts in which their leaders differ.
void Dictionary::compare(CommDraft& known, CommDraft& reported) const {
  unsigned differences = known.differences | reported.differences;
  if (known.comm.site != reported.comm.site) differences |= different_sites;
  if (known.comm.communicators > 0 && reported.comm.communicators > 0) {
    if (known.comm.leader != reported.comm.leader) differences |= different_leaders;
    if (known.comm.user_name != reported.comm.user_name) differences |= different_names;
    if (known.comm.topology != reported.comm.topology) differences |= different_topologies;
  }
  for (CommDraft* const d : {&known, &reported}) {
    d->differences = differences;
    if ((differences & different_leaders) != 0) d->comm.leader = -1;
    if ((differences & different_names) != 0) d->comm.user_name.clear();
    if ((differences & different_topologies) != 0) d->comm.topology.clear();
  }
}

// Merges the report about a communicator, except for its members.
Dictionary::Draft& Dictionary::absorb(CommDraft reported) {
  Draft& draft = drafts_[draft_index(reported.comm.identity)];
  CommDraft& known = draft.facts;
  const bool is_new = known.comm.kind == CommKind::none;
  const std::uint32_t communicators = (is_new ? 0 : known.comm.communicators) + reported.comm.communicators;
  if (folds_ && !is_new) compare(known, reported);
  if (is_new || place(reported) < place(known)) {
    if (reported.comm.user_name.empty()) reported.comm.user_name = known.comm.user_name;
    known = std::move(reported);
  } else if (known.comm.user_name.empty()) {
    known.comm.user_name = reported.comm.user_name;
  }
  if (folds_) known.comm.communicators = communicators;
  return draft;
}

std::uint32_t Dictionary::comm(CommDraft reported) {
  if (reported.comm.kind == CommKind::set) {
    // The identity of a set is that of its members, independent of the order in which a rank met them.
    std::sort(reported.set.begin(), reported.set.end());
    // Members may be equal, because siblings share an identity (fold()).
    reported.set.erase(std::unique(reported.set.begin(), reported.set.end()), reported.set.end());
    // 0 is "no communicator"; the set without members is the one for all sets beyond a limit.
    reported.comm.identity =
        reported.set.empty() ? 1 : commlens::identity_of(reported.set.data(), reported.set.size() * sizeof(Identity));
  }
  const MemberRuns::Run own{reported.rank_in_comm, reported.world_rank, 1, 1};
  const int side = reported.second_side ? 1 : 0;
  const bool is_set = reported.comm.kind == CommKind::set;
  const Identity identity = reported.comm.identity;
  Draft& draft = absorb(std::move(reported));
  if (!is_set && !folds_) draft.members[side].add(own);
  return by_identity_.at(identity);
}

std::uint32_t Dictionary::comm_of(Identity comm) const {
  const auto found = by_identity_.find(comm);
  return found == by_identity_.end() ? 0 : found->second;
}

std::uint32_t Dictionary::site_of(Identity site) const {
  const auto found = by_site_.find(site);
  return found == by_site_.end() ? 0 : found->second;
}

std::vector<Dictionary::CommAndFamily> Dictionary::comm_identities() const {
  std::vector<CommAndFamily> identities(drafts_.size(), {0, 0});
  const auto parent_of = [this](std::size_t i) { return std::size_t{comm_of(drafts_[i].facts.parent)}; };
  each_behind_its_parent(drafts_.size(), parent_of, [&](std::size_t i, std::size_t parent) {
    if (i == 0) return;
    CommAndFamily& own = identities[i];
    const CommDraft& d = drafts_[i].facts;
    own.comm = d.comm.identity;
    const auto settled = settled_sites_.find(own.comm);
    const Identity site = settled != settled_sites_.end()
                              ? settled->second
                              : site_identities_[static_cast<std::size_t>(std::max(d.comm.site, 0))];
    own.family =
        identity_from(identities[parent].family, d.comm.op, site, d.comm.kind == CommKind::set ? '{' : d.letter);
  });
  return identities;
}

std::vector<char> Dictionary::settled_sites() const {
  WireWriter out;
  out.number(static_cast<std::uint64_t>(std::count_if(drafts_.begin(), drafts_.end(), [](const Draft& draft) {
    return (draft.facts.differences & different_sites) != 0;
  })));
  for (const Draft& draft : drafts_) {
    if ((draft.facts.differences & different_sites) == 0) continue;
    out.number(draft.facts.comm.identity);
    out.number(site_identities_[static_cast<std::size_t>(std::max(draft.facts.comm.site, 0))]);
  }
  return out.bytes();
}

bool Dictionary::settle_sites(const std::vector<char>& bytes) {
  WireReader in(bytes.data(), bytes.size());
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    const Identity comm = in.number();
    settled_sites_[comm] = in.number();
  }
  return in.ok();
}

std::uint32_t Dictionary::key(const Catalogue::KeyFacts& key) {
  const auto [entry, is_new] = by_key_.try_emplace(key_of(key), static_cast<std::uint32_t>(keys_.size()));
  const std::uint32_t index = entry->second;
  if (is_new) {
    keys_.push_back(key);
    votes_.push_back({1, 1, 1, 1});
    return index;
  }
  // The majority vote of Boyer and Moore: finds the value that more than half of the ranks have, in one pass.
  Catalogue::KeyFacts& usual = keys_[index];
  std::size_t i = 0;
  for (const auto field : counters_of_key) {
    std::uint32_t& votes = votes_[index][i++];
    if (usual.*field == key.*field) {
      ++votes;
    } else if (votes == 0) {
      usual.*field = key.*field;
      votes = 1;
    } else {
      --votes;
    }
  }
  return index;
}

bool Dictionary::add_text(TextKind kind, std::string text, int ranks) {
  RankText key{kind, std::move(text)};
  // Most ranks have the same text, so only a new one is parsed.
  if (texts_.count(key) == 0) {
    std::vector<ImportCoverage> names;
    std::vector<Setting> settings;
    const bool is_right =
        kind == TextKind::imports ? read_coverage(key.second, names) : read_settings(key.second, settings);
    if (!is_right) return false;
  }
  texts_[std::move(key)] += ranks;
  return true;
}

// The times and the `count` of a report are left out, because every rank has its own.  If all else is equal, the ranks
// of the lower block are those whose report counts.
Identity Dictionary::identity(const Draft& draft) const {
  const CommDraft& d = draft.facts;
  const Catalogue::Comm& c = d.comm;
  Identity id =
      identity_from(comm_entry, c.identity, c.kind, d.parent, c.op, d.letter,
                    site_identities_[static_cast<std::size_t>(std::max(c.site, 0))], c.leader, c.size, c.remote_size,
                    c.communicators, d.differences, identity_of(c.user_name), identity_of(c.topology));
  for (const Identity member : d.set) id = combine(id, member);
  for (const MemberRuns& members : draft.members) {
    if (members.are(block_)) {
      id = identity_from(id, 1, members.runs()[0].rank - block_.first);
      continue;
    }
    for (const MemberRuns::Run& run : members.runs())
      id = identity_from(id, run.rank, run.world, run.stride, run.count);
    id = combine(id, 0);
  }
  return id;
}

Identity Dictionary::identity(const Catalogue::KeyFacts& key) const {
  return identity_from(key_entry, drafts_[key.comm].facts.comm.identity, key.op, key.bin, regions_[key.region].identity,
                       site_identities_[key.site]);
}

Identity Dictionary::identity(const RankText& text, int ranks) const {
  const int shown = ranks == block_.end - block_.first ? -1 : ranks;
  return identity_from(text_entry, static_cast<std::uint32_t>(text.first), identity_of(text.second), shown);
}

Identity Dictionary::identity_of_tag(const std::tuple<Identity, std::string, std::string>& tag) {
  return identity_from(tag_entry, std::get<0>(tag), identity_of(std::get<1>(tag)), identity_of(std::get<2>(tag)));
}

Digest digest_of(const std::vector<Identity>& identities) {
  Digest digest;
  for (const Identity id : identities) {
    ++digest.entries;
    digest.sum += id;
    digest.mixed_sum += mixed(id);
  }
  return digest;
}

// In the order of entries(): an entry comes after those that it refers to.
std::vector<Identity> Dictionary::identities() const {
  std::vector<Identity> all;
  for (std::size_t i = 1; i < sites_.size(); ++i) all.push_back(identity_from(site_entry, site_identities_[i]));
  for (std::size_t i = 1; i < drafts_.size(); ++i) all.push_back(identity(drafts_[i]));
  for (std::size_t i = 1; i < regions_.size(); ++i) all.push_back(identity_from(region_entry, regions_[i].identity));
  for (std::size_t i = 1; i < metrics_.size(); ++i)
    all.push_back(identity_from(metric_entry, identity_of(metrics_[i])));
  for (std::size_t i = 1; i < datatypes_.size(); ++i)
    all.push_back(identity_from(datatype_entry, datatypes_[i].identity));
  for (const auto& tag : tags_) all.push_back(identity_of_tag(tag));
  for (const Catalogue::KeyFacts& key : keys_) all.push_back(identity(key));
  for (const auto& [text, ranks] : texts_) all.push_back(identity(text, ranks));
  return all;
}

void Dictionary::write(WireWriter& out, const Draft& draft, Identity site) {
  const CommDraft& d = draft.facts;
  const Catalogue::Comm& c = d.comm;
  out.number(c.identity);
  out.number(static_cast<std::uint64_t>(c.kind));
  out.number(d.parent);
  out.number(c.op);
  out.number(static_cast<unsigned char>(d.letter));
  out.number(site);
  for (const int n : {c.leader, c.size, c.remote_size, d.rank_in_comm, d.world_rank}) out.signed_number(n);
  out.number(d.second_side ? 1 : 0);
  out.number(d.count);
  out.number(d.differences);
  out.number(c.communicators);
  out.signed_number(c.created_ns);
  out.signed_number(c.freed_ns);
  out.text(c.user_name);
  out.text(c.topology);
  out.number(d.set.size());
  for (const Identity member : d.set) out.number(member);
  for (const MemberRuns& members : draft.members) {
    out.number(members.runs().size());
    for (const MemberRuns::Run& run : members.runs()) {
      for (const int n : {run.rank, run.world, run.stride, run.count}) out.signed_number(n);
    }
  }
}

std::vector<char> Dictionary::entries(const std::vector<char>& wanted) const {
  WireWriter out;
  std::size_t at = 0;
  const auto is_wanted = [&](Identity kind) {
    const bool yes = at < wanted.size() && wanted[at] != 0;
    ++at;
    if (yes) out.number(kind);
    return yes;
  };
  for (std::size_t i = 1; i < sites_.size(); ++i) {
    if (!is_wanted(site_entry)) continue;
    sites_[i].write(out);
    out.number(site_identities_[sites_[i].caller]);
  }
  for (std::size_t i = 1; i < drafts_.size(); ++i) {
    if (!is_wanted(comm_entry)) continue;
    write(out, drafts_[i], site_identities_[static_cast<std::size_t>(std::max(drafts_[i].facts.comm.site, 0))]);
  }
  for (std::size_t i = 1; i < regions_.size(); ++i) {
    if (!is_wanted(region_entry)) continue;
    const Catalogue::Region& region = regions_[i];
    out.number(regions_[static_cast<std::size_t>(region.parent)].identity);
    out.number(static_cast<std::uint64_t>(region.kind));
    out.text(region.name);
  }
  for (std::size_t i = 1; i < metrics_.size(); ++i) {
    if (!is_wanted(metric_entry)) continue;
    out.text(metrics_[i].name);
    out.text(metrics_[i].unit);
  }
  for (std::size_t i = 1; i < datatypes_.size(); ++i) {
    if (is_wanted(datatype_entry)) datatypes_[i].write(out);
  }
  for (const auto& [region, name, value] : tags_) {
    if (!is_wanted(tag_entry)) continue;
    out.number(region);
    out.text(name);
    out.text(value);
  }
  for (const Catalogue::KeyFacts& key : keys_) {
    if (!is_wanted(key_entry)) continue;
    out.number(drafts_[key.comm].facts.comm.identity);
    for (const std::uint32_t n : {key.op, key.bin}) out.number(n);
    out.number(regions_[key.region].identity);
    out.number(site_identities_[key.site]);
    for (const auto field : counters_of_key) out.number(key.*field);
  }
  for (const auto& [text, ranks] : texts_) {
    if (!is_wanted(text_entry)) continue;
    out.number(static_cast<std::uint64_t>(text.first));
    out.text(text.second);
    out.number(static_cast<std::uint64_t>(ranks));
  }
  return out.bytes();
}

std::vector<char> Dictionary::wanted(const std::vector<Identity>& identities, const Block& from) {
  enum Entry : char { comm, text, other };
  std::unordered_map<Identity, std::pair<Entry, std::size_t>> known;
  for (std::size_t i = 1; i < sites_.size(); ++i) known[identity_from(site_entry, site_identities_[i])] = {other, 0};
  for (std::size_t i = 1; i < drafts_.size(); ++i) known[identity(drafts_[i])] = {comm, i};
  for (std::size_t i = 1; i < regions_.size(); ++i)
    known[identity_from(region_entry, regions_[i].identity)] = {other, 0};
  for (std::size_t i = 1; i < metrics_.size(); ++i)
    known[identity_from(metric_entry, identity_of(metrics_[i]))] = {other, 0};
  for (std::size_t i = 1; i < datatypes_.size(); ++i)
    known[identity_from(datatype_entry, datatypes_[i].identity)] = {other, 0};
  for (const auto& tag : tags_) known[identity_of_tag(tag)] = {other, 0};
  for (const Catalogue::KeyFacts& key : keys_) known[identity(key)] = {other, 0};
  std::vector<RankText> texts;
  for (const auto& [rank_text, ranks] : texts_) {
    known[identity(rank_text, ranks)] = {text, texts.size()};
    texts.push_back(rank_text);
  }
  std::vector<char> answer(identities.size(), 1);
  for (std::size_t i = 0; i < identities.size(); ++i) {
    const auto found = known.find(identities[i]);
    if (found == known.end()) continue;
    answer[i] = 0;
    const auto [entry, index] = found->second;
    if (entry == text) texts_[texts[index]] += extended(texts_[texts[index]], from);
    if (entry == comm) extend(drafts_[index], from);
  }
  return answer;
}

// Another block has reported the same communicator.  If the members are all ranks of this block, they are now also all
// ranks of the other one.
void Dictionary::extend(Draft& draft, const Block& to) const {
  if (folds_) draft.facts.comm.communicators *= 2;  // the other block has as many
  for (MemberRuns& members : draft.members) {
    if (!members.are(block_)) continue;
    members.add({members.runs()[0].rank + to.first - block_.first, to.first, 1, to.end - to.first});
  }
}

// Returns how many ranks of block `by` import what `ranks` ranks of this block import: all of them if all do here, else
// the same number.
int Dictionary::extended(int ranks, const Block& by) const {
  return ranks == block_.end - block_.first ? by.end - by.first : ranks;
}

void Dictionary::add_same(const Block& from) {
  for (Draft& draft : drafts_) extend(draft, from);
  for (auto& [text, ranks] : texts_) ranks += extended(ranks, from);
  add_block(from);
}

bool Dictionary::add_comm(WireReader& in) {
  CommDraft d;
  Catalogue::Comm& c = d.comm;
  c.identity = in.number();
  c.kind = static_cast<CommKind>(in.number());
  d.parent = in.number();
  c.op = static_cast<std::uint32_t>(in.number());
  d.letter = static_cast<char>(in.number());
  c.site = static_cast<int>(site_of(in.number()));
  for (int* const n : {&c.leader, &c.size, &c.remote_size, &d.rank_in_comm, &d.world_rank})
    *n = static_cast<int>(in.signed_number());
  d.second_side = in.number() != 0;
  d.count = static_cast<std::uint32_t>(in.number());
  d.differences = static_cast<unsigned>(in.number());
  c.communicators = static_cast<std::uint32_t>(in.number());
  c.created_ns = in.signed_number();
  c.freed_ns = in.signed_number();
  c.user_name = in.text();
  c.topology = in.text();
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) d.set.push_back(in.number());
  MemberRuns members[2];
  for (MemberRuns& side : members) {
    for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
      MemberRuns::Run run{};
      for (int* const field : {&run.rank, &run.world, &run.stride, &run.count})
        *field = static_cast<int>(in.signed_number());
      side.add(run);
    }
  }
  if (!in.ok()) return false;
  Draft& draft = absorb(std::move(d));
  for (int side = 0; side < 2; ++side) draft.members[side].add(members[side]);
  return true;
}

bool Dictionary::add_entries(const std::vector<char>& bytes, const Block& from) {
  WireReader in(bytes.data(), bytes.size());
  for (std::uint64_t kind = in.number(); in.ok(); kind = in.number()) {
    if (kind == site_entry) {
      SiteFacts facts = SiteFacts::read(in);
      facts.caller = site_of(in.number());
      site(std::move(facts));
    } else if (kind == comm_entry) {
      if (!add_comm(in)) return false;
    } else if (kind == key_entry) {
      Catalogue::KeyFacts facts{};
      facts.comm = draft_index(in.number());
      for (std::uint32_t* const n : {&facts.op, &facts.bin}) *n = static_cast<std::uint32_t>(in.number());
      facts.region = region_of(in.number());
      facts.site = site_of(in.number());
      for (const auto field : counters_of_key) facts.*field = in.number();
      if (by_key_.count(key_of(facts)) == 0) key(facts);
    } else if (kind == region_entry) {
      const std::uint32_t parent = region_of(in.number());
      const auto region_kind = static_cast<RegionKind>(in.number());
      region(parent, region_kind, in.text());
    } else if (kind == metric_entry) {
      std::string name = in.text();
      metric({std::move(name), in.text()});
    } else if (kind == datatype_entry) {
      datatype(DatatypeFacts::read(in));
    } else if (kind == tag_entry) {
      const std::uint32_t its_region = region_of(in.number());
      std::string name = in.text();
      tag(its_region, std::move(name), in.text());
    } else if (kind == text_entry) {
      const std::uint64_t text_kind = in.number();
      std::string text = in.text();
      if (text_kind > static_cast<std::uint64_t>(TextKind::settings)) return false;
      if (!add_text(static_cast<TextKind>(text_kind), std::move(text), static_cast<int>(in.number()))) return false;
    } else {
      return false;
    }
  }
  add_block(from);
  return true;
}

std::map<std::pair<std::string, std::string>, Dictionary::ImportedName> Dictionary::coverage() const {
  std::map<std::pair<std::string, std::string>, ImportedName> coverage;
  for (const auto& [encoded, importing] : texts_) {
    std::vector<ImportCoverage> names;
    if (encoded.first != TextKind::imports || !read_coverage(encoded.second, names)) continue;
    for (ImportCoverage& name : names) {
      ImportedName& sum =
          coverage.try_emplace({std::move(name.symbol), std::move(name.object)}, ImportedName{name.treatment, 0})
              .first->second;
      sum.treatment = std::max(sum.treatment, name.treatment);
      sum.ranks += importing;
    }
  }
  return coverage;
}

std::map<Dictionary::SettingTexts, int> Dictionary::settings(std::string (*stored)(const std::string&)) const {
  std::map<SettingTexts, int> found;
  for (const auto& [encoded, ranks] : texts_) {
    std::vector<Setting> settings;
    if (encoded.first != TextKind::settings || !read_settings(encoded.second, settings)) continue;
    std::set<SettingTexts> own;
    for (const Setting& s : settings) own.emplace(stored(s.source), stored(s.name), stored(s.value));
    for (const SettingTexts& setting : own) found[setting] += ranks;
  }
  return found;
}

Dictionary::Numbers Dictionary::numbers_in(const Catalogue& catalogue) const {
  Numbers numbers;
  std::unordered_map<Identity, std::uint32_t> comms, sites, regions, metrics, datatypes;
  for (std::size_t i = 0; i < catalogue.comms.size(); ++i)
    comms.try_emplace(catalogue.comms[i].identity, static_cast<std::uint32_t>(i));
  std::vector<Identity> site_identities(catalogue.sites.size());  // callers come first
  for (std::size_t i = 1; i < catalogue.sites.size(); ++i) {
    const SiteFacts& site = catalogue.sites[i];
    site_identities[i] = identity_of(site, site.caller < i ? site_identities[site.caller] : 0);
    sites.try_emplace(site_identities[i], static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < catalogue.regions.size(); ++i)
    regions.try_emplace(catalogue.regions[i].identity, static_cast<std::uint32_t>(i));
  for (std::size_t i = 1; i < catalogue.metrics.size(); ++i)
    metrics.try_emplace(identity_of(catalogue.metrics[i]), static_cast<std::uint32_t>(i));
  for (std::size_t i = 0; i < catalogue.datatypes.size(); ++i)
    datatypes.try_emplace(catalogue.datatypes[i].identity, static_cast<std::uint32_t>(i));
  const auto find = [](const auto& in, Identity identity) {
    const auto found = in.find(identity);
    return found == in.end() ? 0 : found->second;
  };
  for (const Draft& draft : drafts_) numbers.comms.push_back(find(comms, draft.facts.comm.identity));
  for (const Identity site : site_identities_) numbers.sites.push_back(find(sites, site));
  for (const Catalogue::Region& region : regions_) numbers.regions.push_back(find(regions, region.identity));
  for (const MetricFacts& metric : metrics_) numbers.metrics.push_back(find(metrics, identity_of(metric)));
  for (const DatatypeFacts& datatype : datatypes_) numbers.datatypes.push_back(find(datatypes, datatype.identity));
  for (Catalogue::KeyFacts key : keys_) {
    key.comm = numbers.comms[key.comm];
    key.site = numbers.sites[key.site];
    key.region = numbers.regions[key.region];
    numbers.keys.push_back(static_cast<std::uint32_t>(catalogue.find(key)));
  }
  return numbers;
}

}  // namespace commlens
