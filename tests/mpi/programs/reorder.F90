! SPDX-License-Identifier: Apache-2.0
! A better order of the ranks, asked for from Fortran: r and r + size/2 exchange; prints as reorder.c does.
#include "commlens.f90"

program better
  use commlens
#ifdef USE_MPI_F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: numbers = 1000
  integer :: error, rank, new_rank, size, i, outcome, partner
  real(8) :: mine(numbers), theirs(numbers)
  logical :: reordered
  character(len=64) :: host
  character(len=64), allocatable :: hosts(:)
#ifdef USE_MPI_F08
  type(MPI_Comm) :: comm
#else
  integer :: comm
#endif
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  mine = rank
  partner = mod(rank + size / 2, size)
  do i = 1, 100
    call MPI_Sendrecv(mine, numbers, MPI_DOUBLE_PRECISION, partner, 0, theirs, numbers, MPI_DOUBLE_PRECISION, partner, &
                      0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end do
#ifdef USE_MPI_F08
  call commlens_reorder(MPI_COMM_WORLD%MPI_VAL, comm%MPI_VAL, reordered, outcome)
#else
  call commlens_reorder(MPI_COMM_WORLD, comm, reordered, outcome)
#endif
  if (reordered .neqv. outcome == 1) print *, 'wrong outcome'
  call MPI_Comm_rank(comm, new_rank, error)
  call hostnm(host)
  allocate (hosts(0:size - 1))
  call MPI_Allgather(host, 64, MPI_CHARACTER, hosts, 64, MPI_CHARACTER, comm, error)
  partner = mod(new_rank + size / 2, size)
  i = merge(1, 0, hosts(partner) == host)
  print '(a, i0, a, i0, a, i0, a, i0, a)', '0 ', outcome, ' ' // trim(host) // ': ', rank, ' -> ', new_rank, &
    ', partners on my host ', i, ' of 1'
  call MPI_Comm_free(comm, error)
  call MPI_Finalize(error)
end program
