// SPDX-License-Identifier: Apache-2.0
#include "core/collect/without_messages.h"

#include <new>
#include <optional>
#include <utility>

#include "core/base/say.h"
#include "core/base/wire.h"
#include "core/collect/package.h"
#include "core/collect/part.h"
#include "core/profile/profile.h"

namespace commlens {
namespace {

// Returns the package of this rank for a profile of `ranks` ranks, and frees its counters.  Each rank may fill its
// share of the rows of slices, because it cannot ask the others.
std::vector<char> package(Contribution& own, int ranks) {
  const std::optional<Counted> counted = std::exchange(own.counted, std::nullopt);
  if (!counted) throw std::bad_alloc();
  const auto share = static_cast<std::uint64_t>(ranks);
  const std::uint64_t rows = slice_rows_for(counted->cells.size() * share);
  return packed(*counted, own.begin, SliceRows(*counted).within(rows / share),
                limits_for(share, counted->samples.size(), counted->messages.size()));
}

// Serialises the orders of rank 0, which apply_orders() applies on another rank: only rank 0 is sure to have the user's
// options.
std::vector<char> written(const Destination& wanted) {
  WireWriter out;
  out.text(wanted.name);
  out.number(wanted.quiet ? 1 : 0);
  out.number(wanted.mode);
  out.pairs(wanted.meta);
  return out.bytes();
}

void apply_orders(const std::vector<char>& orders, Destination& destination) {
  WireReader in(orders.data(), orders.size());
  Destination wanted;
  wanted.name = in.text();
  wanted.quiet = in.number() != 0;
  wanted.mode = static_cast<mode_t>(in.number());
  wanted.meta = in.pairs();
  if (in.ok()) destination = std::move(wanted);
}

}  // namespace

bool collect_alone(Contribution own, int ranks) {
  const std::vector<char> bytes = package(own, 1);
  out::Phases phases{own.begin, own.clock()};
  phases.clock = own.clock;
  Profile profile;
  const bool is_whole = profile.add(bytes.data(), bytes.size());
  phases.gathered = own.clock();
  return is_whole && write_file(own.destination, ranks, profile, phases);
}

OwnPart put_part(Contribution own, int rank, int ranks, std::uint64_t launch, out::Parts& parts) {
  OwnPart part;
  part.rank = rank;
  part.ranks = ranks;
  PartHead head{rank, ranks, launch, 0, 0, 0, {}, parts.profile_name(), own.destination.meta};
  if (own.counted) {
    const RankFacts& facts = own.counted->facts;
    head.world = facts.world;
    head.pid = facts.pid;
    head.app_ns = facts.app_ns;
    head.node = facts.node;
  }
  part.package = package(own, ranks);
  part.phases = {own.begin, own.clock()};
  part.phases.clock = own.clock;
  part.destination = std::move(own.destination);
  if (rank == 0) parts.put_orders(written(part.destination));
  part.is_there = parts.put(rank, part_of(head, part.package));
  return part;
}

namespace {

// Adds the part of another rank to a profile.  Returns false if there is none, or if it is damaged.
bool add_part(const std::optional<std::vector<char>>& bytes, Profile& profile) {
  const std::optional<Part> part = bytes ? read_part(bytes->data(), bytes->size()) : std::nullopt;
  return part && profile.add(part->package, part->bytes);
}

}  // namespace

bool merge_parts(OwnPart own, out::Parts& parts) {
  const bool is_last = parts.claim(own.ranks);
  if (!own.is_there && !is_last) {
    say("rank %d: its calls are not in the profile: %s. Its counters are kept on its node; run 'commlens recover' "
        "there",
        own.rank, parts.error.c_str());
  }
  if (!is_last) return false;  // a later rank writes the profile
  Profile profile;
  bool is_some_part_left = false;
  for (int rank = 0; rank < own.ranks; ++rank) {
    const bool is_own = rank == own.rank;
    const std::optional<std::vector<char>> part = is_own ? std::move(own.package) : parts.get(rank);
    if (is_own ? profile.add(part->data(), part->size()) : add_part(part, profile)) continue;
    // A rank without a part has kept its counters on its node.
    const bool is_left = !part || !part->empty();
    say("the data of rank %d is missing; the profile contains the others%s%s", rank,
        is_left ? ". Its part is kept in " : "", is_left ? parts.directory().c_str() : "");
    is_some_part_left = is_some_part_left || is_left;
  }
  own.phases.gathered = own.phases.clock();
  apply_orders(parts.orders(), own.destination);
  own.destination.kept = "The counters are kept in " + parts.directory();
  if (!write_file(own.destination, own.ranks, profile, own.phases)) return false;
  if (!is_some_part_left) parts.remove(own.ranks);
  return true;
}

}  // namespace commlens
