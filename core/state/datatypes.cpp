// SPDX-License-Identifier: Apache-2.0
#include "core/state/datatypes.h"

#include <mutex>
#include <new>
#include <unordered_map>

#include "core/hot/handles.h"
#include "core/state/journal.h"
#include "core/state/sums.h"

namespace commlens {

bool has_datatypes = false;

namespace {

std::mutex mutex;

struct Known {
  std::vector<DatatypeFacts> facts{1};
  std::unordered_map<Identity, std::uint32_t> by_identity;
  std::vector<Combination> combinations{1};
  std::map<Combination, std::uint32_t> by_combination;
  HandleMap steps;  // key_of_step() -> the combination that follows; read without the lock
};

Known& known() {
  static auto* const all = new Known();  // never destroyed: threads may call MPI while the program exits
  return *all;
}

DatatypeFacts special(const char* text) {
  DatatypeFacts facts;
  facts.tree = text;
  facts.identity = identity_of(facts.tree.data(), facts.tree.size());
  return facts;
}

// pre for those below: the caller holds the lock.
std::uint32_t add_datatype(const DatatypeFacts& facts) {
  Known& all = known();
  const auto found = all.by_identity.find(facts.identity);
  if (found != all.by_identity.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(all.facts.size());
  if (number > most_datatypes) return most_datatypes;
  all.facts.push_back(number < most_datatypes ? facts : special("(further datatypes)"));
  all.by_identity.emplace(all.facts.back().identity, number);
  journal::note(journal::DatatypeEntry{number, all.facts.back()});
  return number;
}

std::uint32_t add_combination(const Combination& combination) {
  Known& all = known();
  const auto found = all.by_combination.find(combination);
  if (found != all.by_combination.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(all.combinations.size());
  if (number > most_combinations) return most_combinations;
  Combination stored = combination;
  if (number == most_combinations) {
    const std::uint32_t several = add_datatype(special("(several datatypes)"));
    stored = {several, several, 0};
  }
  all.combinations.push_back(stored);
  all.by_combination.emplace(stored, number);
  journal::note(journal::CombinationEntry{number, stored});
  return number;
}

void add_use(std::uint32_t& to, std::uint32_t datatype) {
  to = to == 0 || to == datatype ? datatype : add_datatype(special("(several datatypes)"));
}

std::uint64_t key_of_step(std::uint32_t from, std::uint32_t datatype, Use use) noexcept {
  return std::uint64_t{1} << 62 | std::uint64_t{from} << 32 | std::uint64_t{datatype} << 8 |
         static_cast<std::uint64_t>(use);
}

std::uint32_t step(std::uint32_t from, std::uint32_t datatype, Use use) noexcept try {
  const std::uint64_t key = key_of_step(from, datatype, use);
  if (const void* const next = known().steps.find(key); next != nullptr)
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(next));
  std::uint32_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    Combination combination = known().combinations[from];
    if (use == Use::sent || use == Use::both) add_use(combination.sent, datatype);
    if (use == Use::received || use == Use::both) add_use(combination.received, datatype);
    if (use == Use::target) add_use(combination.target, datatype);
    number = add_combination(combination);
  }
  known().steps.put(key, reinterpret_cast<void*>(std::uintptr_t{number}));
  return number;
} catch (const std::bad_alloc&) {
  return from;
}

}  // namespace

std::uint32_t number_of(const DatatypeFacts& facts) noexcept try {
  const std::lock_guard<std::mutex> lock(mutex);
  return add_datatype(facts);
} catch (const std::bad_alloc&) {
  return 0;
}

std::uint32_t freed_datatype() noexcept try {
  return number_of(special("(freed during the call)"));
} catch (const std::bad_alloc&) {
  return 0;
}

Site with_datatype(Site site, std::uint32_t datatype, Use use) noexcept {
  if (datatype == 0 || use == Use::layout) return site;
  return without_datatypes(site) | Site{step(datatypes_of(site), datatype, use)} << datatypes_shift;
}

void DatatypeFacts::write(WireWriter& out) const {
  out.text(tree);
  out.number(size);
  out.signed_number(lower);
  out.signed_number(extent);
  out.number(identity);
}

DatatypeFacts DatatypeFacts::read(WireReader& in) {
  DatatypeFacts facts;
  facts.tree = in.text();
  facts.size = in.number();
  facts.lower = in.signed_number();
  facts.extent = in.signed_number();
  facts.identity = in.number();
  return facts;
}

void CountedDatatypes::add(const Cell& cell) {
  const std::uint32_t number = datatypes_of(cell.site);
  if (number == 0) return;
  add_counters(sums[{comm_of_key(cell.key), op_of_key(cell.key), number}], cell);
}

CountedDatatypes datatypes_here() {
  CountedDatatypes counted;
  if (!has_datatypes) return counted;
  const std::lock_guard<std::mutex> lock(mutex);
  counted.facts = known().facts;
  counted.combinations = known().combinations;
  return counted;
}

}  // namespace commlens
