// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/api.h"

#include <initializer_list>

#include "core/cold/say.h"
#include "core/mpi/bind.h"

namespace commlens {

Api api{};
HandleMap basic_types;

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

// Those that are not there, or have no size, are asked for each time like any other datatype.
void learn_basic_types() noexcept {
  for (const char* symbol : {"ompi_mpi_char",
                             "ompi_mpi_signed_char",
                             "ompi_mpi_unsigned_char",
                             "ompi_mpi_byte",
                             "ompi_mpi_packed",
                             "ompi_mpi_short",
                             "ompi_mpi_unsigned_short",
                             "ompi_mpi_int",
                             "ompi_mpi_unsigned",
                             "ompi_mpi_long",
                             "ompi_mpi_unsigned_long",
                             "ompi_mpi_long_long_int",
                             "ompi_mpi_unsigned_long_long",
                             "ompi_mpi_float",
                             "ompi_mpi_double",
                             "ompi_mpi_long_double",
                             "ompi_mpi_wchar",
                             "ompi_mpi_int8_t",
                             "ompi_mpi_uint8_t",
                             "ompi_mpi_int16_t",
                             "ompi_mpi_uint16_t",
                             "ompi_mpi_int32_t",
                             "ompi_mpi_uint32_t",
                             "ompi_mpi_int64_t",
                             "ompi_mpi_uint64_t",
                             "ompi_mpi_aint",
                             "ompi_mpi_offset",
                             "ompi_mpi_count",
                             "ompi_mpi_c_bool",
                             "ompi_mpi_c_complex",
                             "ompi_mpi_c_float_complex",
                             "ompi_mpi_c_double_complex",
                             "ompi_mpi_float_int",
                             "ompi_mpi_double_int",
                             "ompi_mpi_2int",
                             "ompi_mpi_character",
                             "ompi_mpi_logical",
                             "ompi_mpi_integer",
                             "ompi_mpi_integer4",
                             "ompi_mpi_integer8",
                             "ompi_mpi_real",
                             "ompi_mpi_real4",
                             "ompi_mpi_real8",
                             "ompi_mpi_dblprec",
                             "ompi_mpi_cplex",
                             "ompi_mpi_dblcplex",
                             "ompi_mpi_2dblprec"}) {
    auto* const datatype = static_cast<MPI_Datatype>(data_definition(symbol));
    MPI_Count size = 0;
    if (datatype == nullptr || api.Type_size_x(datatype, &size) != MPI_SUCCESS || size <= 0) continue;
    basic_types.put(reinterpret_cast<std::uint64_t>(datatype), reinterpret_cast<void*>(size));
  }
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

void learn_datatypes() noexcept {
#if defined(OPEN_MPI)
  learn_basic_types();
#endif
}

}  // namespace commlens
