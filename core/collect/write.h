// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/out/sqlite.h"

namespace commlens {

// Where a profile goes, and what the process that writes it adds: only this process needs `name` and `meta`.
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

// Prints what the ranks noticed and where the profile is.  error: why it is not where the user wanted it.
void say_stored(const Destination& destination, const Profile::Oddities& oddities, std::uint64_t ranks,
                const std::string& path, const std::string& error);

// What messages say of counters that are in no profile.
extern const char kept_in_arenas[];

// Writes a profile of `ranks` processes as one file.  Returns false, after a message, if nothing is written.
bool write_file(const Destination& destination, int ranks, Profile& profile, out::Phases phases);

// The same for a profile that is finished, with these totals.
bool write_finished(const Destination& destination, int ranks, const Profile& profile, const out::Totals& totals,
                    out::Phases phases);

}  // namespace commlens
