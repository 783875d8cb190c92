! SPDX-License-Identifier: Apache-2.0
! Who this rank talks to, asked from Fortran: two messages of three integers to the next one.
#include "commlens.f90"

program watched
  use commlens
  use mpi
  use, intrinsic :: iso_c_binding, only: c_int64_t
  implicit none
  integer :: error, rank, size, i, a(3), b(3), status(MPI_STATUS_SIZE), n
  integer(c_int64_t) :: messages(16), bytes(16)
  type(commlens_watch_t) :: watch, copy
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  a = rank
  watch = commlens_watch(MPI_COMM_WORLD, COMMLENS_SENT)
  call commlens_watch_start(watch)
  do i = 1, 2
    call MPI_Sendrecv(a, 3, MPI_INTEGER, mod(rank + 1, size), 0, b, 3, MPI_INTEGER, mod(rank + size - 1, size), 0, &
                      MPI_COMM_WORLD, status, error)
  end do
  copy = commlens_watch_snapshot(watch)
  call commlens_watch_stop(watch)
  call commlens_watch_reset(watch)
  n = commlens_watch_size(copy)
  call commlens_watch_read(copy, messages, bytes)
  print '(a, i0, a, *(1x, i0, "/", i0))', 'sent ', rank, ':', (messages(i), bytes(i), i = 1, n)
  call commlens_watch_read(watch, messages, bytes)
  print '(a, i0, a, *(1x, i0, "/", i0))', 'reset ', rank, ':', (messages(i), bytes(i), i = 1, n)
  call commlens_watch_free(copy)
  call commlens_watch_free(watch)
  call MPI_Finalize(error)
end program
