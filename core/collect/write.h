// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/out/sqlite.h"

namespace commlens {

// The path of a profile, and the facts that the writing process adds.  Only this process needs `name` and `meta`.
struct Destination {
  std::string name;  // of the profile; empty: there was no memory for it
  out::Meta meta;    // the rows of table meta that one process has
  bool quiet = false;
  mode_t mode = out::usual_mode;  // of the files
  std::string kept;               // where the counters are if the profile cannot be stored; empty: in the arenas
};

// Returns whether the user wants no profile: it would go to /dev/null.
bool is_unwanted(const Destination& destination);
void say_unwanted(const Destination& destination);

// Prints the notices of the ranks, the path of the profile, the share of MPI and the first finding.  finding: may be
// empty.
void say_stored(const Destination& destination, const out::Totals& totals, const out::Stored& stored,
                const std::string& finding = "");

// The part of a message about counters that are in no profile.
extern const char kept_in_arenas[];

// Writes a profile of `ranks` processes as one file.  Returns false, after a message, if nothing is written.
bool write_file(const Destination& destination, int ranks, Profile& profile, out::Phases phases);

// The same for a profile that is finished, with these totals.
bool write_finished(const Destination& destination, int ranks, const Profile& profile, const out::Totals& totals,
                    out::Phases phases);

}  // namespace commlens
