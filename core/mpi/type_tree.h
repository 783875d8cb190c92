// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/state/datatypes.h"

namespace commlens {

// Describes a datatype by the calls that constructed it.  Calls MPI, which must accept the handle.  Throws bad_alloc.
DatatypeFacts tree_of(MPI_Datatype datatype);

}  // namespace commlens
