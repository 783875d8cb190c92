// SPDX-License-Identifier: Apache-2.0
// MPI_Pcontrol under the names that Fortran compilers give it.
#include <cstdint>

#include "core/job/pcontrol.h"

// A Fortran program that passes a name has no interface for it: the address is an argument, and the length follows all
// arguments.
#define COMMLENS_FORTRAN_PCONTROL(name, c_name)                                                               \
  extern "C" int c_name(int, ...);                                                                            \
  extern "C" __attribute__((visibility("default"))) void name(const int* level, const char* text,             \
                                                              std::uint32_t bytes) noexcept {                 \
    commlens::note_fortran_caller(                                                                            \
        reinterpret_cast<commlens::Site>(__builtin_extract_return_addr(__builtin_return_address(0))), bytes); \
    c_name(*level, text);                                                                                     \
  }
// NOLINTBEGIN(readability-identifier-naming): names as compilers write them
COMMLENS_FORTRAN_PCONTROL(mpi_pcontrol_, MPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(mpi_pcontrol__, MPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(mpi_pcontrol, MPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(MPI_PCONTROL, MPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(pmpi_pcontrol_, PMPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(pmpi_pcontrol__, PMPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(pmpi_pcontrol, PMPI_Pcontrol)
COMMLENS_FORTRAN_PCONTROL(PMPI_PCONTROL, PMPI_Pcontrol)
// NOLINTEND(readability-identifier-naming)
