! SPDX-License-Identifier: Apache-2.0
! CALLS messages around a ring and as many sums, of one number each, from Fortran; says what app.h says.
program fortran_loop
  use mpi
  implicit none
  double precision :: mine, received, total, faults, all_faults
  integer :: rank, ranks, calls, i, right, left, state, ierr
  character(len=16) :: argument

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  calls = 0
  call get_command_argument(1, argument)
  read (argument, *, iostat=state) calls
  if (command_argument_count() /= 1 .or. state /= 0 .or. calls < 1) then
    if (rank == 0) write (0, '(a)') "fortran_loop: usage: fortran_loop CALLS, a whole number from 1 on"
    call MPI_Finalize(ierr)
    stop 2, quiet=.true.
  end if

  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  faults = 0
  do i = 1, calls
    mine = dble(i) + rank
    received = -1
    call MPI_Sendrecv(mine, 1, MPI_DOUBLE_PRECISION, right, 0, received, 1, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    if (received /= dble(i) + left) faults = faults + 1
    call MPI_Allreduce(received, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (total /= dble(ranks) * i + dble(ranks) * (ranks - 1) / 2) faults = faults + 1
  end do

  call MPI_Allreduce(faults, all_faults, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. all_faults == 0) write (*, '(a, f0.1)') "fortran_loop ok ", total
  if (rank == 0 .and. all_faults /= 0) write (0, '(a, i0, a)') "fortran_loop: wrong: ", int(all_faults), " checks failed"
  call MPI_Finalize(ierr)
  if (all_faults /= 0) stop 1, quiet=.true.
end program fortran_loop
