// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/api.h"

#include <algorithm>
#include <initializer_list>

#include "core/base/say.h"
#include "core/job/job.h"
#include "core/mpi/bind.h"

namespace commlens {

Api api{};

namespace {

template <class Function>
bool find(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(next_definition(name).address);
  if (function == nullptr) say("the MPI library has no %s; running unprofiled", name);
  return function != nullptr;
}

#if defined(OPEN_MPI)
template <class Handle>
bool find_handle(Handle& handle, const char* symbol) noexcept {
  handle = static_cast<Handle>(data_definition(symbol));
  if (handle == nullptr) say("the MPI library has no %s; running unprofiled", symbol);
  return handle != nullptr;
}

#else

// Returns the handle that all requests created by `make` share, or 0.  They share one if two that exist at the same
// time have the same handle.
template <class Make>
std::uint64_t shared_handle(Make make) noexcept {
  MPI_Request first = api.request_null, second = api.request_null;
  if (make(&first) != MPI_SUCCESS || make(&second) != MPI_SUCCESS) return 0;
  const std::uint64_t handle = first == second ? bits(first) : 0;
  for (MPI_Request* const request : {&first, &second}) api.Wait(request, MPI_STATUS_IGNORE);
  return handle;
}

// The libraries of the MPICH family have one shared handle per kind of request, at equal distances.  Creating a request
// of a one-sided operation needs a window, so its handle is computed from the others.
void learn_shared_requests() noexcept {
  const auto send =
      shared_handle([](MPI_Request* r) { return api.Isend(nullptr, 0, api.byte, MPI_PROC_NULL, 0, api.comm_self, r); });
#if defined(MPICH_NAME)
  if (send >> 30 == 1u) return;  // is_shared() detects them by their bits
#endif
  const auto receive =
      shared_handle([](MPI_Request* r) { return api.Irecv(nullptr, 0, api.byte, MPI_PROC_NULL, 0, api.comm_self, r); });
  const auto collective = shared_handle([](MPI_Request* r) { return api.Ibarrier(api.comm_self, r); });
  std::uint64_t one_sided = 0;
  constexpr std::uint64_t places[][2] = {{10, 12}, {2, 3}};  // collective, one-sided: MPICH 5, Intel MPI 2021
  for (const auto& [of_collective, of_one_sided] : places) {
    const std::uint64_t distance = receive - send;
    if (collective == send + of_collective * distance) one_sided = send + of_one_sided * distance;
  }
  if (send == 0 || receive == 0) one_sided = 0;
  const std::uint64_t found[] = {send, receive, collective, one_sided};
  for (int i = 0; i < 4; ++i) api.shared_requests[i] = found[i];
}
#endif

void find_shared_range() noexcept {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
#if defined(MPICH_NAME)
  first = std::uint64_t{1} << 30;  // see is_shared()
  last = (std::uint64_t{1} << 31) - 1;
#endif
  for (const std::uint64_t shared : api.shared_requests) {
    if (shared == 0) continue;
    first = std::min(first, shared);
    last = std::max(last, shared);
  }
  api.first_shared = first;
  api.shared_range = first > last ? 0 : last - first;
}

#if defined(MPI_ABI_VERSION)
void do_nothing(MPI_Comm*, int*, ...) {}
#endif

}  // namespace

bool load_api() noexcept {
  bool ok = true;
#define COMMLENS_FIND(name) ok = ok && find(api.name, "PMPI_" #name);
  COMMLENS_MPI_FUNCTIONS(COMMLENS_FIND)
#undef COMMLENS_FIND
#if defined(OPEN_MPI)
  ok = ok && find_handle(api.comm_world, "ompi_mpi_comm_world") && find_handle(api.comm_self, "ompi_mpi_comm_self") &&
       find_handle(api.comm_null, "ompi_mpi_comm_null") && find_handle(api.byte, "ompi_mpi_byte") &&
       find_handle(api.errors_return, "ompi_mpi_errors_return") && find_handle(api.no_op, "ompi_mpi_op_no_op") &&
       find_handle(api.request_null, "ompi_request_null") && find_handle(api.message_null, "ompi_message_null") &&
       find_handle(api.message_no_proc, "ompi_message_no_proc");
  api.shared_requests[0] = reinterpret_cast<std::uint64_t>(data_definition("ompi_request_empty"));
#else
  api.comm_world = MPI_COMM_WORLD;
  api.comm_self = MPI_COMM_SELF;
  api.comm_null = MPI_COMM_NULL;
  api.byte = MPI_BYTE;
#if !defined(MPI_ABI_VERSION)
  api.errors_return = MPI_ERRORS_RETURN;
#endif
  api.no_op = MPI_NO_OP;
  api.request_null = MPI_REQUEST_NULL;
  api.message_null = MPI_MESSAGE_NULL;
  api.message_no_proc = MPI_MESSAGE_NO_PROC;
#endif
  find_shared_range();
  return ok;
}

void complete_api() noexcept {
#if defined(MPI_ABI_VERSION)
  // MPICH and Intel MPI disagree about which numbers are MPI_ERRORS_RETURN and MPI_ERRORS_ABORT.
  if (api.errors_return == nullptr) api.Comm_create_errhandler(do_nothing, &api.errors_return);
#endif
#if !defined(OPEN_MPI)
  if (job.world) learn_shared_requests();  // needs communicators
  find_shared_range();
#endif
}

}  // namespace commlens
