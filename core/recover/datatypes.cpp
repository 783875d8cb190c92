// SPDX-License-Identifier: Apache-2.0
// The datatypes of an arena.
#include "core/recover/read.h"

namespace commlens::arena {
namespace {

constexpr std::uint64_t most_size = std::uint64_t{1} << 60;

// Fills the places of entries that are lost, because cells and combinations refer to numbers.
template <class Entries, class Lost>
bool is_next(Entries& entries, std::uint32_t number, std::uint32_t most, Lost lost) {
  if (number < entries.size() || number > most) return false;
  while (entries.size() < number) entries.push_back(lost());
  return true;
}

}  // namespace

bool Reader::add_datatype(journal::DatatypeEntry entry) {
  std::vector<DatatypeFacts>& all = counted_.datatypes.facts;
  const auto lost = [&all] {
    DatatypeFacts facts;
    facts.tree = "(lost)";
    facts.identity = all.size();  // no two may be equal
    return facts;
  };
  DatatypeFacts& facts = entry.facts;
  const auto is_distance = [](std::int64_t n) {
    return n < static_cast<std::int64_t>(most_size) && n > -static_cast<std::int64_t>(most_size);
  };
  if (facts.size >= most_size || !is_distance(facts.lower) || !is_distance(facts.extent)) return false;
  if (!is_next(all, entry.number, most_datatypes, lost)) return false;
  all.push_back(std::move(facts));
  return true;
}

bool Reader::add_combination(const journal::CombinationEntry& entry) {
  const std::size_t datatypes = counted_.datatypes.facts.size();
  const auto& [sent, received, target] = entry.combination;
  for (const std::uint32_t n : {sent, received, target}) {
    if (n >= datatypes) return false;
  }
  if (!is_next(counted_.datatypes.combinations, entry.number, most_combinations, [] { return Combination{}; }))
    return false;
  counted_.datatypes.combinations.push_back(entry.combination);
  return true;
}

}  // namespace commlens::arena
