// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collect/group.h"
#include "core/profile/dictionary.h"

namespace commlens {

// Collective: merges the dictionaries of all processes into that of rank 0.  The other dictionaries contain an
// incomplete merge, which the caller must not use.
//
// The processes merge along a binomial tree.  A child whose dictionary equals that of its parent sends 40 bytes.
// Otherwise the child sends 8 bytes per entry, the entry's identity, and then the entries that the parent asks for.
enum class AgreementResult { yes, no_memory, broken };  // no_memory: on some process
AgreementResult agree(Group& group, Dictionary& dictionary);

}  // namespace commlens
