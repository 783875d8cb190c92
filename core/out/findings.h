// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/ticks.h"

struct sqlite3;

namespace commlens::out {

// A profile with more cells is not searched at the end of a job: `commlens explain` reads it later.  Searching this
// many takes some 20 ms.
inline constexpr std::size_t most_cells_searched = 10'000;

// Returns the finding of spec/findings.toml that costs most, as one sentence without a call site.  Empty if there is
// none, or if the search fails: a profile is complete without it.
//
// file: the bytes of a profile.  They are only read; SQLite has no pointer to constant ones.
std::string first_finding(std::vector<unsigned char>& file);
std::string first_finding(sqlite3* db);

// Returns a time with its unit and three digits, such as "12.3 ms"; a share of 1 in per cent, such as "12.3 %".  The
// same texts as those of python/commlens/render/units.py.
std::string time_text(Ns ns);
std::string share_text(double share);

}  // namespace commlens::out
