// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/datatypes.h"

#include <exception>

#include "core/hot/thread.h"
#include "core/mpi/type_tree.h"
#include "core/process/symbols.h"

namespace commlens {

HandleMap layouts;
#if defined(MPICH_NAME)
std::uint32_t basic_kind = 0x4c000000u;
#endif

namespace {

// While datatypes are counted: their layouts and numbers, by handle.
HandleMap counted_layouts, counted_numbers;

HandleMap& layouts_in_use() noexcept { return has_datatypes ? counted_layouts : layouts; }

Layout learn_datatype(MPI_Datatype datatype) noexcept {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  if (api.Type_size_x(datatype, &size) != MPI_SUCCESS || size <= 0) size = 0;
  if (api.Type_get_extent_x(datatype, &lower, &extent) != MPI_SUCCESS ||
      api.Type_get_true_extent_x(datatype, &true_lower, &true_extent) != MPI_SUCCESS) {
    extent = true_extent = size;
  }
  const bool alone = size == 0 || size == true_extent;
  const Layout layout(static_cast<Bytes>(size), alone && (size == 0 || size == extent), alone);
  // if there is no memory, the next call asks again
  layouts_in_use().put(bits(datatype), layout.packed());
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

std::uint32_t learn_tree(MPI_Datatype datatype) noexcept try {
  const std::uint32_t number = number_of(tree_of(datatype));
  counted_numbers.put(bits(datatype), reinterpret_cast<void*>(std::uintptr_t{number}));
  return number;
} catch (const std::exception&) {  // no memory, or a length that no library should return
  return 0;
}

// Adds a datatype to those of the call in progress.
Layout count_datatype(MPI_Datatype datatype, std::uint64_t freed, Use use) noexcept {
  // Without a lock if nothing was freed during the call.
  const auto find = [&](const HandleMap& map) {
    void* const known = map.find(bits(datatype));
    if (known != nullptr && HandleMap::none_freed_since(freed)) return HandleMap::Since{known, false};
    return map.find_since(bits(datatype), freed);
  };
  const HandleMap::Since layout = find(counted_layouts), number = find(counted_numbers);
  const bool may_ask = !layout.gone || is_predefined(datatype);
  if (use != Use::layout) {
    auto found = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(number.value));
    if (found == 0) found = may_ask ? learn_tree(datatype) : freed_datatype();
    Site& site = this_thread().current.site;
    site = with_datatype(site, found, use);
  }
  if (layout.value != nullptr) return Layout(layout.value);
  return may_ask ? learn_datatype(datatype) : Layout(0, true, true);
}

}  // namespace

void count_datatypes() noexcept {
  has_datatypes = true;
#if defined(MPICH_NAME)
  basic_kind = 1;
#endif
}

const void* known_layout(MPI_Datatype datatype) noexcept { return layouts_in_use().find(bits(datatype)); }

Layout late_layout(MPI_Datatype datatype, std::uint64_t freed, Use use) noexcept {
  if (has_datatypes) return count_datatype(datatype, freed, use);
  const HandleMap::Since then = layouts.find_since(bits(datatype), freed);
  if (then.value != nullptr) return Layout(then.value);
  return !then.gone || is_predefined(datatype) ? learn_datatype(datatype) : Layout(0, true, true);
}

void foresee_datatype(MPI_Datatype datatype) noexcept { static_cast<void>(learn_datatype(datatype)); }

void datatype_made(MPI_Datatype datatype) noexcept {
  static_cast<void>(learn_datatype(datatype));
  if (has_datatypes) static_cast<void>(learn_tree(datatype));
}

void before_type_free(MPI_Datatype datatype) noexcept {
  if (has_datatypes) counted_numbers.take(bits(datatype));
  layouts_in_use().take(bits(datatype));
}

}  // namespace commlens
