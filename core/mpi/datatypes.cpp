// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/datatypes.h"

#include "core/process/symbols.h"

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
  layouts.put(bits(datatype), layout.packed());  // if there is no memory, the next call asks again
  return layout;
}

// Returns whether MPI defined the datatype itself; then it is never freed.
bool is_predefined(MPI_Datatype datatype) noexcept {
#if defined(OPEN_MPI)
  // Predefined datatypes are variables of the MPI library, which the linker may have moved into the executable.  All
  // others are in allocated memory.
  return is_in_object(datatype);
#elif defined(MPI_ABI_VERSION)
  return bits(datatype) < 4096;  // the standard's constants
#else
  // The two highest bits of a handle are its kind: 1 is built-in, 2 is direct; the first direct ones are pairs such as
  // MPI_FLOAT_INT.
  const auto handle = static_cast<std::uint32_t>(datatype);
  constexpr std::uint32_t pairs = 5;
  return handle >> 30 == 1 || (handle >> 30 == 2 && (handle & 0x3ffffffu) < pairs);
#endif
}

}  // namespace

Layout late_layout(MPI_Datatype datatype, std::uint64_t freed) noexcept {
  const HandleMap::Since then = layouts.find_since(bits(datatype), freed);
  if (then.value != nullptr) return Layout(then.value);
  return !then.gone || is_predefined(datatype) ? learn_datatype(datatype) : Layout(0, true, true);
}

void datatype_made(MPI_Datatype datatype) noexcept { static_cast<void>(learn_datatype(datatype)); }
void before_type_free(MPI_Datatype datatype) noexcept { layouts.take(bits(datatype)); }

}  // namespace commlens
