// SPDX-License-Identifier: Apache-2.0
#include "core/profile/waiting.h"

#include <cstddef>
#include <iterator>

#include "core/out/tables.h"
#include "generated/schema_rows.h"

namespace commlens::out {
namespace {

const char* name_of(Unsplit reason) {
  constexpr const char* names[] = {"", "members", "no data", "machines", "order", "prefix", "threads", "posting"};
  static_assert(std::size(names) == unsplit_count);
  return names[static_cast<std::size_t>(reason)];
}

}  // namespace

void fill_waiting(Database& db, const Profile& profile) {
  Insert<rows::Waiting> insert(db);
  for (const WaitingRow& r : profile.waiting) {
    rows::Waiting row;
    row.comm = r.comm;
    row.op = r.op;
    row.bin = stored_bin(r.bin);
    row.region = r.region;
    row.rank = r.rank;
    row.samples = r.samples;
    row.time_ns = r.time;
    row.waiting_ns = r.waiting;
    row.last = r.last;
    row.late_ns = r.late;
    row.behind_ns = r.behind;
    row.between_ns = r.between;
    row.outside_ns = r.outside();
    insert(row);
  }
}

void fill_clocks(Database& db, const Profile& profile) {
  constexpr double millionths = 1e6;
  Insert<rows::Clock> insert(db);
  for (const ClockLine& line : profile.clocks) {
    rows::Clock row;
    row.rank = line.rank;
    row.calls = line.calls;
    if (line.is_known) {
      row.drift_ppm = line.drift * millionths;
      row.error_ns = line.error;
      row.excess_ns = line.excess;
    }
    insert(row);
  }
}

void fill_sampled(Database& db, const Profile& profile) {
  fill_clocks(db, profile);
  Insert<rows::Sampled> insert(db);
  for (const SampledRow& r : profile.sampled) {
    rows::Sampled row;
    row.comm = r.comm;
    row.op = r.op;
    row.bin = stored_bin(r.bin);
    row.samples = r.samples;
    row.collectives = r.of;
    row.across = r.across;
    row.by_clock = r.by_clock;
    row.clock_ns = r.clock;
    row.time_ns = r.time;
    row.waiting_ns = r.waiting;
    row.error_ns = r.has_error ? Integer(r.error) : Integer(null);
    row.spread_ns = r.spread;
    row.late_ns = r.late;
    insert(row);
  }
  Insert<rows::Unsplit> insert_unsplit(db);
  for (const UnsplitRow& r : profile.unsplit) {
    rows::Unsplit row;
    row.comm = r.comm;
    row.op = r.op;
    row.bin = stored_bin(r.bin);
    row.reason = name_of(r.reason);
    row.calls = r.calls;
    insert_unsplit(row);
  }
}

}  // namespace commlens::out
