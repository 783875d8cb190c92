// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>

namespace [[gnu::visibility("hidden")]] commlens {

// The MPI procedures that commlens calls itself, through their PMPI_ names in the MPI library.  They are looked up by
// name, because a program may load MPI after commlens, and because an undefined symbol in our library would break
// programs without MPI.
// clang-format off
#define COMMLENS_MPI_FUNCTIONS(X)                                                                                   \
  X(Bcast) X(Cart_create) X(Cart_get) X(Cart_shift) X(Cartdim_get) X(Comm_create) X(Comm_create_errhandler) X(Comm_dup) X(Comm_free) X(Comm_group) X(Comm_rank)                 \
  X(Comm_remote_group) X(Comm_remote_size) X(Comm_create_keyval) X(Comm_free_keyval) X(Comm_get_errhandler) X(Comm_set_attr) X(Comm_set_errhandler) X(Comm_size) X(Comm_split) X(Comm_test_inter)         \
  X(Dist_graph_neighbors) X(Dist_graph_neighbors_count) X(Errhandler_free) X(Error_class) X(Gather) X(Gatherv) X(Get_elements_x) X(Get_library_version) X(Get_version)         \
  X(Graph_neighbors) X(Graph_neighbors_count) X(Graphdims_get) X(Group_free) X(Group_incl) X(Group_rank) X(Group_size) X(Group_translate_ranks) X(Iallgather) X(Ibarrier) X(Ibcast) X(Igatherv) X(Irecv) X(Isend)          \
  X(Query_thread) X(Scatter) X(Test) X(Test_cancelled) X(Topo_test) X(Type_free) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent_x)       \
  X(Type_get_name) X(Type_get_true_extent_x) X(Type_size_x) X(Wait)
// clang-format on

// Converts a handle to a key of our tables.
template <class Handle>
inline std::uint64_t bits(Handle handle) noexcept {
  if constexpr (sizeof(Handle) == sizeof(int)) {
    return static_cast<std::uint32_t>(handle);
  } else {
    return reinterpret_cast<std::uint64_t>(handle);
  }
}

template <class Handle>
inline Handle of_bits(std::uint64_t bits) noexcept {
  if constexpr (sizeof(Handle) == sizeof(int)) {
    return static_cast<Handle>(bits);
  } else {
    return reinterpret_cast<Handle>(bits);
  }
}

struct Api {
// Members have the names the standard gives the procedures.
// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses)
#define COMMLENS_MEMBER(name) decltype(&PMPI_##name) name;
  COMMLENS_MPI_FUNCTIONS(COMMLENS_MEMBER)
#undef COMMLENS_MEMBER
  // NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)

  // Predefined handles.  In Open MPI they are addresses of data symbols, which our library must not refer to either.
  MPI_Comm comm_world, comm_self, comm_null;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
  MPI_Op no_op;
  MPI_Request request_null;
  MPI_Message message_null, message_no_proc;
  std::uint64_t shared_requests[4];  // 0: none
  // The shared requests are in this range of handles, as few others are.
  std::uint64_t first_shared = 0, shared_range = ~std::uint64_t{0};
};

extern Api api;

// Looks up all of them.  If one is missing, prints one line and returns false.
bool load_api() noexcept;

// Completes what can only be determined when MPI is initialised.
void complete_api() noexcept;

// True for handles that many requests share because they were complete when they were created.  Such a request does not
// identify the call that made it, and waiting for it takes no time.
inline bool is_shared(MPI_Request request) noexcept {
  const std::uint64_t handle = bits(request);
#if defined(MPICH_NAME)
  // MPICH: the two top bits of a handle are 01 for predefined objects.
  if (handle >> 30 == 1u) return true;
#endif
  for (const std::uint64_t shared : api.shared_requests) {
    if (handle == shared) return true;
  }
  return false;
}

// Two comparisons: false for nearly all requests that are neither null nor shared, and for no other one.  The null
// request is not in the range of the others: an executable that names it has a copy of it, far from the library.
inline bool may_be_predefined(MPI_Request request) noexcept {
  return __builtin_expect(request == api.request_null || bits(request) - api.first_shared <= api.shared_range, 0);
}

}  // namespace commlens
