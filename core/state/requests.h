// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/requests.h"

namespace commlens {

// Allocate and free the records of persistent requests.  Both are rare and take a lock.  new_persistent() returns null
// when memory ran out.
PersistentRequest* new_persistent() noexcept;
void free_persistent(PersistentRequest* p) noexcept;

}  // namespace commlens
