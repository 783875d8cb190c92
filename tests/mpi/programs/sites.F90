! SPDX-License-Identifier: Apache-2.0
! Three lines that call MPI_Barrier, with 1, 3 and 5 calls: -DMPIF_H, -DUSE_MPI or -DUSE_MPI_F08.
program sites
#if defined(USE_MPI_F08)
  use mpi_f08
  implicit none
#elif defined(USE_MPI)
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: i, ierr
  integer, volatile :: three = 3, five = 5  ! or the compiler writes the calls out
  call MPI_Init(ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)  ! 1 call
  do i = 1, three
    call MPI_Barrier(MPI_COMM_WORLD, ierr)  ! 3 calls
  end do
  do i = 1, five
    call MPI_Barrier(MPI_COMM_WORLD, ierr)  ! 5 calls
  end do
  call MPI_Finalize(ierr)
end program sites
