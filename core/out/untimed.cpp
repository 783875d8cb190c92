// SPDX-License-Identifier: Apache-2.0
// The table of the calls that were not timed.
#include "core/out/tables.h"
#include "generated/schema_rows.h"

namespace commlens::out {

void fill_untimed(Database& db, const Profile& profile) {
  Insert<rows::Untimed> insert(db);
  for (const Profile::Row& r : profile.rows) {
    if (r.untimed == 0 && r.time_error == 0) continue;
    rows::Untimed row;
    row.key = id_of(profile, r.key);
    row.rank = r.rank;
    row.calls = r.untimed;
    row.time_error_ns = r.time_error;
    insert(row);
  }
}

}  // namespace commlens::out
