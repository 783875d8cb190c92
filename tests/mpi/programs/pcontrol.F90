! SPDX-License-Identifier: Apache-2.0
! MPI_Pcontrol from Fortran: with a name, as IPM has it, where mpif.h leaves the interface out; else only the level.
program main
#ifdef USE_MPI_F08
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: ierror
  call MPI_Init(ierror)
#ifdef USE_MPI_F08
  call MPI_Pcontrol(5)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Pcontrol(-5)
#else
  call MPI_Pcontrol(1, 'inner part'//char(0))
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Pcontrol(-1, 'inner part'//char(0))
#endif
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Pcontrol(0)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
end program
