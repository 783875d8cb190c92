// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collect/dictionary.h"
#include "core/collect/group.h"

namespace commlens {

// Brings what the dictionaries of all have to that of rank 0; the others are left as they happen to be.
//
// Subtrees that have the same send 24 bytes.  Where they differ, the lower one says by 8 bytes an entry what it has,
// and sends what the upper one asks for.
enum class Agreed { yes, no_memory, broken };  // no_memory: on some of them
Agreed agree(Group& group, Dictionary& dictionary);

}  // namespace commlens
