! SPDX-License-Identifier: Apache-2.0
! Datatypes of Fortran: named ones, those of kind parameters, and one made of another.  One rank.
program datatypes
  use mpi
  implicit none
  integer :: ierror, vector, real_kind, integer_kind
  double precision :: from(64), to(64)

  call MPI_Init(ierror)
  call MPI_Type_vector(3, 2, 4, MPI_DOUBLE_PRECISION, vector, ierror)
  call MPI_Type_commit(vector, ierror)
  call MPI_Type_create_f90_real(15, 307, real_kind, ierror)
  call MPI_Type_create_f90_integer(9, integer_kind, ierror)
  from = 1
  call MPI_Sendrecv(from, 1, vector, 0, 0, to, 6, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierror)
  call MPI_Bcast(from, 5, real_kind, 0, MPI_COMM_SELF, ierror)
  call MPI_Bcast(from, 3, integer_kind, 0, MPI_COMM_SELF, ierror)
  call MPI_Bcast(from, 2, MPI_COMPLEX, 0, MPI_COMM_SELF, ierror)
  call MPI_Bcast(from, 2, MPI_LOGICAL, 0, MPI_COMM_SELF, ierror)
  call MPI_Type_free(vector, ierror)
  call MPI_Finalize(ierror)
end program datatypes
