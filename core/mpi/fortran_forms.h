/* SPDX-License-Identifier: Apache-2.0
 * Also read by the assembler: no C++ here. */
#pragma once

/* The symbols of one Fortran procedure: mpi_x_, mpi_x_f08_, mpi_x_f08ts_, mpi_x_f08ts_large_, mpi_x, mpi_x__, MPI_X;
 * in the profiling interface pmpi_x_, pmpi_x_f08_; mpi_x_f08_large_ (MPICH); and, with a TYPE(C_PTR), mpi_x_cptr_
 * (Open MPI). */
#define FORTRAN_FORMS 11
