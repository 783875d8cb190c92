/* SPDX-License-Identifier: Apache-2.0
 * Read by the assembler, too: no C++ here. */
#pragma once

/* Names of one Fortran procedure: mpi_x_, mpi_x_f08_, mpi_x_f08ts_, mpi_x_f08ts_large_, mpi_x, mpi_x__, MPI_X,
 * of the profiling interface pmpi_x_, pmpi_x_f08_; mpi_x_f08_large_ (MPICH) and, with a TYPE(C_PTR), mpi_x_cptr_
 * (Open MPI). */
#define FORTRAN_FORMS 11
