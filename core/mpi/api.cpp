// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/api.h"

#include "core/cold/say.h"
#include "core/mpi/bind.h"

namespace commlens {

Api api{};

namespace {

template <class Function>
bool find(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(next_definition(name));
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
#endif

}  // namespace

bool load_api() noexcept {
  bool ok = true;
#define COMMLENS_FIND(name) ok = ok && find(api.name, "PMPI_" #name);
  COMMLENS_API(COMMLENS_FIND)
#undef COMMLENS_FIND
#if defined(OPEN_MPI)
  ok = ok && find_handle(api.comm_world, "ompi_mpi_comm_world") && find_handle(api.comm_self, "ompi_mpi_comm_self") &&
       find_handle(api.comm_null, "ompi_mpi_comm_null") && find_handle(api.byte, "ompi_mpi_byte") &&
       find_handle(api.errors_return, "ompi_mpi_errors_return") && find_handle(api.no_op, "ompi_mpi_op_no_op") &&
       find_handle(api.request_null, "ompi_request_null") && find_handle(api.message_null, "ompi_message_null") &&
       find_handle(api.message_no_proc, "ompi_message_no_proc");
  api.empty_request = reinterpret_cast<std::uint64_t>(data_definition("ompi_request_empty"));
#else
  api.comm_world = MPI_COMM_WORLD;
  api.comm_self = MPI_COMM_SELF;
  api.comm_null = MPI_COMM_NULL;
  api.byte = MPI_BYTE;
  api.errors_return = MPI_ERRORS_RETURN;
  api.no_op = MPI_NO_OP;
  api.request_null = MPI_REQUEST_NULL;
  api.message_null = MPI_MESSAGE_NULL;
  api.message_no_proc = MPI_MESSAGE_NO_PROC;
#endif
  return ok;
}

}  // namespace commlens
