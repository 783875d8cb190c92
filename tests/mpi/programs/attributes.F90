! SPDX-License-Identifier: Apache-2.0
! Asks for an attribute: neither Fortran binding uses the C procedure for that.
program attributes
  use mpi
  implicit none
  integer :: ierr
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: found
  call MPI_Init(ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (found) print '(a)', 'found'
  call MPI_Finalize(ierr)
end program
