! SPDX-License-Identifier: Apache-2.0
! On 2 ranks: Fortran calls behind one that never reaches C.  Some bindings answer MPI_Comm_get_attr themselves, and
! have a procedure of another name where an argument is a TYPE(C_PTR), or an integer is long.
program silent
#ifdef USE_MPI_F08
  use mpi_f08
#else
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
#ifdef USE_MPI_F08
  type(MPI_Win) :: win
  type(MPI_Datatype) :: made
#else
  integer :: win, made
#endif
#ifdef LONG
  integer(kind=MPI_COUNT_KIND) :: count
#else
  integer :: count
#endif
  integer :: ierr, rank, i, one(1)
  logical :: flag
  integer(kind=MPI_ADDRESS_KIND) :: bytes, value, zero
  type(c_ptr) :: memory
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  bytes = 64
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  zero = 0
  one(1) = 7
  do i = 1, 5
    call MPI_Put(one, 1, MPI_INTEGER, 1 - rank, zero, 1, MPI_INTEGER, win, ierr)
  end do
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_free(win, ierr)
  count = 4
  do i = 1, 3
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call MPI_Type_contiguous(count, MPI_INTEGER, made, ierr)
    call MPI_Type_free(made, ierr)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a)', 'silent done'
  call MPI_Finalize(ierr)
end program silent
