! SPDX-License-Identifier: Apache-2.0
! Duplicates that complete later, from Fortran: -DUSE_MPI_F08, else mpif.h.
#ifdef USE_MPI_F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program idup
#ifdef USE_MPI_F08
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  HANDLE(MPI_Comm) :: copy, several(3)
  HANDLE(MPI_Request) :: request, requests(3)
  integer :: i, k, ierr, rank
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 20
    call MPI_Comm_idup(MPI_COMM_WORLD, copy, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Barrier(copy, ierr)
    call MPI_Comm_free(copy, ierr)  ! the next one may get the same handle
  end do
  do k = 1, 3
    do i = 1, 3
      call MPI_Comm_idup(MPI_COMM_WORLD, several(i), requests(i), ierr)
    end do
    call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierr)
    do i = 1, 3
      call MPI_Barrier(several(i), ierr)
      call MPI_Comm_free(several(i), ierr)
    end do
  end do
  if (rank == 0) print '(a)', 'idup done'
  call MPI_Finalize(ierr)
end program idup
