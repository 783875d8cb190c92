// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/datatypes.h"

namespace commlens {

HandleMap layouts;

namespace {

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

}  // namespace

Layout late_layout(MPI_Datatype datatype, std::uint64_t freed) noexcept {
  const Layout unknown(0, true, true);
  void* value = nullptr;
  const HandleMap::Freed was = layouts.find_freed(bits(datatype), freed, value);
  if (was == HandleMap::Freed::yes) return value != nullptr ? Layout(value) : unknown;
  const void* const known = layouts.find(bits(datatype));
  if (known != nullptr) return Layout(known);
  // It may be gone: then MPI must not be asked about it.
  return was == HandleMap::Freed::no ? learn_datatype(datatype) : unknown;
}

void datatype_going(MPI_Datatype datatype) noexcept { layouts.take(bits(datatype)); }

}  // namespace commlens
