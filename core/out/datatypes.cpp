// SPDX-License-Identifier: Apache-2.0
#include "core/out/tables.h"
#include "generated/schema_rows.h"

namespace commlens::out {

void fill_datatypes(Database& db, const Profile& profile, Part part) {
  if (profile.datatypes.size() <= 1) return;  // [0] stands for none
  Insert<rows::Datatype> insert(db);
  for (std::size_t i = 0; i < profile.datatypes.size(); ++i) {
    if (i != 0 && part == Part::shard && profile.has_datatype[i] == 0) continue;
    const DatatypeFacts& facts = profile.datatypes[i];
    rows::Datatype row;
    row.id = i;
    row.tree = i == 0 ? "(none)" : facts.tree;
    row.size = facts.size;
    row.lower_bound = facts.lower;
    row.extent = facts.extent;
    insert(row);
  }
}

void fill_datatype_uses(Database& db, const Profile& profile) {
  Insert<rows::DatatypeUse> insert(db);
  for (const Profile::DatatypeRow& r : profile.datatype_rows) {
    rows::DatatypeUse row;
    row.comm = r.comm;
    row.op = r.op;
    row.sent = r.sent;
    row.received = r.received;
    row.target = r.target;
    row.rank = r.rank;
    row.calls = r.calls;
    row.time_ns = r.time;
    row.bytes_sent = r.bytes_sent;
    row.bytes_received = r.bytes_received;
    insert(row);
  }
}

}  // namespace commlens::out
