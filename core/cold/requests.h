// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/requests.h"

namespace commlens {

// The records of persistent requests.  Making and freeing one is rare and takes a lock; null when memory ran out.
PersistentRequest* new_persistent() noexcept;
void free_persistent(PersistentRequest* p) noexcept;

}  // namespace commlens
