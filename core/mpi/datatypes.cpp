// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/datatypes.h"

namespace commlens {

HandleMap layouts;

Layout learn_datatype(MPI_Datatype datatype) noexcept {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  if (api.Type_size_x(datatype, &size) != MPI_SUCCESS || size <= 0) size = 0;
  if (api.Type_get_extent_x(datatype, &lower, &extent) != MPI_SUCCESS ||
      api.Type_get_true_extent_x(datatype, &true_lower, &true_extent) != MPI_SUCCESS) {
    extent = true_extent = size;
  }
  const bool alone = size == 0 || size == true_extent;
  const Layout layout(static_cast<Bytes>(size), alone && (size == 0 || size == extent), alone);
  layouts.put(bits(datatype), layout.packed());  // without memory for it we ask again next time
  return layout;
}

void datatype_going(MPI_Datatype datatype) noexcept { layouts.take(bits(datatype)); }

}  // namespace commlens
