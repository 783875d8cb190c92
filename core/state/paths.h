// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/paths.h"

namespace commlens {

// wanted: how many frames a call path has at most (COMMLENS_FRAMES).  Call it before the first thread counts.
void choose_frames(unsigned long wanted) noexcept;
unsigned most_frames() noexcept;

// Returns an empty cache; PathCache::none if call paths have one frame, or without memory.
PathCache* new_path_cache() noexcept;

// The calling thread uses the cache from now on.
void use_path_cache(PathCache* cache) noexcept;

// Returns the return address that a call site stands for: of a path, the innermost.
Site address_of(Site site) noexcept;

// Returns the path to the function that contains a call site; 0: unknown.
Site caller_of(Site site) noexcept;

}  // namespace commlens
