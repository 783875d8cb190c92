/* SPDX-License-Identifier: Apache-2.0
 * Also read by the assembler: no C++ here. */
#pragma once

/* The symbols of one Fortran procedure: mpi_x_, mpi_x_f08_, mpi_x_f08ts_, mpi_x_f08ts_large_, mpi_x, mpi_x__, MPI_X;
 * in the profiling interface pmpi_x_, pmpi_x_f08_; mpi_x_f08_large_ (MPICH); and, with a TYPE(C_PTR), mpi_x_cptr_
 * (Open MPI). */
#define FORTRAN_FORMS 11

/* FORTRAN_NAME(symbol, number of the symbol, op) for each of them. */
#define EACH_FORTRAN_FORM(name, upper, number, op)                  \
  FORTRAN_NAME(name##_, FORTRAN_FORMS*(number), op)                 \
  FORTRAN_NAME(name##_f08_, FORTRAN_FORMS*(number) + 1, op)         \
  FORTRAN_NAME(name##_f08ts_, FORTRAN_FORMS*(number) + 2, op)       \
  FORTRAN_NAME(name##_f08ts_large_, FORTRAN_FORMS*(number) + 3, op) \
  FORTRAN_NAME(name, FORTRAN_FORMS*(number) + 4, op)                \
  FORTRAN_NAME(name##__, FORTRAN_FORMS*(number) + 5, op)            \
  FORTRAN_NAME(upper, FORTRAN_FORMS*(number) + 6, op)               \
  FORTRAN_NAME(p##name##_, FORTRAN_FORMS*(number) + 7, op)          \
  FORTRAN_NAME(p##name##_f08_, FORTRAN_FORMS*(number) + 8, op)      \
  FORTRAN_NAME(name##_f08_large_, FORTRAN_FORMS*(number) + 9, op)   \
  FORTRAN_NAME(name##_cptr_, FORTRAN_FORMS*(number) + 10, op)
