// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/hot/paths.h"
#include "core/state/site_facts.h"

namespace commlens {

// wanted: how many frames a call path has at most (COMMLENS_FRAMES), and as many of Python; 0: no call sites.  Call it
// before the first thread counts.
void choose_frames(unsigned long wanted) noexcept;

// Returns whether call sites are call paths: they have several frames, or Python's.
bool has_paths() noexcept;

// Returns an empty cache; PathCache::none if there are no call paths, or without memory.
PathCache* new_path_cache() noexcept;

// The calling thread uses the cache from now on.
void use_path_cache(PathCache* cache) noexcept;

// Returns a line about the calls that were counted at their call site alone, because there was no room for their path;
// nothing if there are none.
std::optional<std::string> full_table_of_paths();

// Returns the return address that a call site stands for: of a path, the innermost.  0: it is a place in Python code.
Site address_of(Site site) noexcept;

// Returns the place in Python code that a call site stands for; null: it is a return address.
const SiteFacts* python_place(Site site) noexcept;

// Returns the path to the function that contains a call site; 0: unknown.
Site caller_of(Site site) noexcept;

}  // namespace commlens
