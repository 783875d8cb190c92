// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/cold/profile.h"

namespace commlens::out {

using Meta = std::vector<std::pair<std::string, std::string>>;

// The result of an attempt to store a profile: where it went, or what went wrong, in words for a person.
struct Stored {
  std::string path;   // empty: not stored
  std::string error;  // empty: no problem; beside a path: why it is not where it was asked to be
};

// Builds the SQLite file in memory and writes it in one go under a temporary name, then gives it its own; an
// existing file is never replaced.  When `name` cannot be written, falls back to $TMPDIR or /tmp.
// building: when the collection of all ranks began on this rank.
Stored store(const Profile& profile, const Meta& meta, const std::string& name, Ticks building);

}  // namespace commlens::out
