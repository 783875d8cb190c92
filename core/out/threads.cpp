// SPDX-License-Identifier: Apache-2.0
// The tables with the counters of single threads.
#include "core/out/tables.h"
#include "generated/schema_rows.h"

namespace commlens::out {

void fill_threads(Database& db, const Profile& profile) {
  Insert<rows::Thread> insert(db);
  for (const Profile::ThreadRow& r : profile.threads) {
    const bool is_one = r.thread >= 0;
    rows::Thread row;
    row.rank = r.rank;
    row.thread = r.thread;
    row.kind = !is_one ? "others" : r.is_main ? "main" : "thread";
    row.threads = r.threads;
    row.tid = is_one ? Integer(r.id) : Integer(null);
    row.name = is_one ? Text(r.name) : Text(null);
    insert(row);
  }
  Insert<rows::ThreadCell> insert_cell(db);
  for (const Profile::ThreadCell& r : profile.thread_cells) {
    rows::ThreadCell row;
    row.key = id_of(profile, r.key);
    row.rank = r.rank;
    row.thread = r.thread;
    row.calls = r.calls;
    row.time_ns = r.time;
    row.time_min_ns = r.time_min;
    row.time_max_ns = r.time_max;
    row.bytes_sent = r.bytes_sent;
    row.bytes_received = r.bytes_received;
    insert_cell(row);
  }
  Insert<rows::ThreadRegion> insert_region(db);
  for (const Profile::ThreadRegion& r : profile.thread_regions) {
    rows::ThreadRegion row;
    row.region = r.region;
    row.rank = r.rank;
    row.thread = r.thread;
    row.calls = r.calls;
    row.open = r.open;
    row.time_ns = r.time;
    row.nested_ns = r.nested;
    row.mpi_ns = r.mpi;
    insert_region(row);
  }
}

}  // namespace commlens::out
