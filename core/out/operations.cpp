// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/out/tables.h"
#include "generated/procedures.h"
#include "generated/schema_rows.h"

namespace commlens::out {
namespace {

// Returns, by procedure, whether rows of the file refer to it.
std::vector<char> ops_of(const Profile& profile, Part part) {
  if (part == Part::index) return std::vector<char>(std::size(op_facts), 1);  // of all shards
  std::vector<char> used(std::size(op_facts));
  used[0] = 1;
  const auto use = [&used](std::uint32_t op) {
    if (op < used.size()) used[op] = 1;
  };
  const bool is_whole = part == Part::whole;  // has all keys and communicators
  for (std::size_t i = 0; i < profile.keys.size(); ++i) {
    if (is_whole || profile.has_key[i] != 0) use(profile.keys[i].op);
  }
  for (std::size_t i = 0; i < profile.comms.size(); ++i) {
    if (is_whole || profile.has_comm[i] != 0) use(profile.comms[i].op);
  }
  for (const Profile::Slice& slice : profile.slices) use(slice.op);
  for (const Profile::DatatypeRow& row : profile.datatype_rows) use(row.op);
  for (const Profile::Line& line : profile.lines) {
    if (line.op >= 0) use(static_cast<std::uint32_t>(line.op));
  }
  for (const Profile::LastCall& place : profile.last_calls) use(place.op);
  for (const WaitingRow& row : profile.waiting) use(row.op);  // also of receivers elsewhere that waited for these ranks
  for (const SampledRow& row : profile.sampled) use(row.op);
  for (const UnsplitRow& row : profile.unsplit) use(row.op);
  for (const Profile::PeerRow& row : profile.peer_rows) use(row.op);
  for (const Profile::EventRow& row : profile.event_rows) use(row.op);
  if (part == Part::shard) return used;
  // Views look for the procedures that the program imports by their names.
  std::set<std::string> imported;
  for (const auto& [name, import] : profile.dictionary.coverage()) imported.insert(procedure_of(name.first));
  for (std::size_t id = 0; id < used.size(); ++id) {
    if (imported.count(op_facts[id].name) != 0) used[id] = 1;
  }
  return used;
}

}  // namespace

void fill_ops(Database& db, const Profile& profile, Part part) {
  Insert<rows::Op> insert(db);
  const std::vector<char> used = ops_of(profile, part);
  for (std::size_t id = 0; id < std::size(op_facts); ++id) {
    if (used[id] == 0) continue;
    rows::Op row;
    row.id = id;
    row.name = op_facts[id].name;
    row.class_ = op_facts[id].klass;
    insert(row);
  }
}

}  // namespace commlens::out
