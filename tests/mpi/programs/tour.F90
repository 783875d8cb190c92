! SPDX-License-Identifier: Apache-2.0
! The tour of tour.c in Fortran.  Compile with one of -DMPIF_H, -DUSE_MPI, -DUSE_MPI_F08: same calls, three bindings.
#ifdef USE_MPI_F08
#define HANDLE(kind) type(kind)
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, n) type(MPI_Status) :: name(n)
#else
#define HANDLE(kind) integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, n) integer :: name(MPI_STATUS_SIZE, n)
#endif

program tour
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
  integer :: rank, nranks, right, left, above, below, half_rank, partner, i, ierr, src, dst
  integer :: ints(64), more(64), counts(4), offsets(4), mine(4), dims(2)
  double precision :: reals(16), sums(16)
  logical :: periodic(2)
  character(len=9) :: path
  integer(MPI_ADDRESS_KIND) :: bytes, disp
  integer(MPI_OFFSET_KIND) :: offset
  HANDLE(MPI_Comm) :: half, copy, grid
  HANDLE(MPI_Request) :: requests(8)
  HANDLE(MPI_Win) :: window
  HANDLE(MPI_File) :: file
  STATUS(received)
  STATUSES(several, 8)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  do i = 1, 64
    ints(i) = rank + i - 1
  end do
  more = ints
  reals = rank
  sums = rank
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)

  do i = 1, 30
    call MPI_Allreduce(ints, more, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, merge(1, 0, rank < nranks / 2), rank, half, ierr)
  do i = 1, 100
    call MPI_Allreduce(reals, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, half, ierr)
  end do
  call MPI_Comm_rank(half, half_rank, ierr)
  partner = 1 - half_rank

  if (mod(rank, 2) == 0) then
    call MPI_Send(ints, 5, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
    call MPI_Recv(more, 64, MPI_INTEGER, left, 4, MPI_COMM_WORLD, received, ierr)
    call MPI_Ssend(ints, 2, MPI_INTEGER, right, 5, MPI_COMM_WORLD, ierr)
  else
    call MPI_Recv(more, 64, MPI_INTEGER, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Send(ints, 7, MPI_INTEGER, right, 4, MPI_COMM_WORLD, ierr)
    call MPI_Recv(more, 2, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end if
  above = merge(rank + 1, MPI_PROC_NULL, rank + 1 < nranks)
  below = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  call MPI_Sendrecv(reals, 3, MPI_DOUBLE_PRECISION, above, 6, sums, 16, MPI_DOUBLE_PRECISION, below, 6, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Send(ints, 9, MPI_INTEGER, MPI_PROC_NULL, 7, MPI_COMM_WORLD, ierr)
  call MPI_Recv(more, 9, MPI_INTEGER, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)

  do i = 0, 3
    call MPI_Irecv(more(8 * i + 1), 8, MPI_INTEGER, partner, i, half, requests(1 + i), ierr)
    call MPI_Isend(ints, i + 1, MPI_INTEGER, partner, i, half, requests(5 + i), ierr)
  end do
  call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Irecv(more, 8, MPI_INTEGER, partner, 8, half, requests(1), ierr)
  call MPI_Isend(ints, 6, MPI_INTEGER, partner, 8, half, requests(2), ierr)
  call MPI_Wait(requests(1), received, ierr)
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
  call MPI_Irecv(more, 8, MPI_INTEGER, partner, 9, half, requests(1), ierr)
  call MPI_Irecv(sums, 8, MPI_DOUBLE_PRECISION, left, 9, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Isend(ints, 3, MPI_INTEGER, partner, 9, half, requests(3), ierr)
  call MPI_Isend(reals, 4, MPI_DOUBLE_PRECISION, right, 9, MPI_COMM_WORLD, requests(4), ierr)
  call MPI_Waitall(4, requests, several, ierr)
  call MPI_Iallreduce(ints, more, 5, MPI_INTEGER, MPI_MAX, half, requests(1), ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)

  call MPI_Allreduce(MPI_IN_PLACE, more, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    call MPI_Gather(MPI_IN_PLACE, 2, MPI_INTEGER, more, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  else
    call MPI_Gather(ints, 2, MPI_INTEGER, more, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  end if
  call MPI_Allgather(MPI_IN_PLACE, 2, MPI_INTEGER, more, 2, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (rank == 1) then
    call MPI_Reduce(MPI_IN_PLACE, sums, 6, MPI_DOUBLE_PRECISION, MPI_SUM, 1, MPI_COMM_WORLD, ierr)
  else
    call MPI_Reduce(reals, sums, 6, MPI_DOUBLE_PRECISION, MPI_SUM, 1, MPI_COMM_WORLD, ierr)
  end if
  if (rank == 0) then
    call MPI_Scatter(ints, 4, MPI_INTEGER, MPI_IN_PLACE, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  else
    call MPI_Scatter(ints, 4, MPI_INTEGER, more, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  end if
  call MPI_Alltoall(MPI_IN_PLACE, 4, MPI_INTEGER, more, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)

  counts = [1, 2, 3, 4]
  offsets = [0, 4, 8, 12]
  mine = rank + 1
  call MPI_Gatherv(ints, rank + 1, MPI_INTEGER, more, counts, offsets, MPI_INTEGER, 2, MPI_COMM_WORLD, ierr)
  call MPI_Alltoallv(ints, counts, offsets, MPI_INTEGER, more, mine, offsets, MPI_INTEGER, MPI_COMM_WORLD, ierr)

  call MPI_Comm_dup(half, copy, ierr)
  call MPI_Comm_set_name(copy, 'copy of the half', ierr)
  call MPI_Bcast(reals, 10, MPI_DOUBLE_PRECISION, 1, copy, ierr)
  call MPI_Barrier(copy, ierr)
  call MPI_Comm_free(copy, ierr)
  dims = [2, 2]
  periodic = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, .false., grid, ierr)
  call MPI_Cart_shift(grid, 1, 1, src, dst, ierr)
  call MPI_Sendrecv(ints, 4, MPI_INTEGER, dst, 1, more, 4, MPI_INTEGER, src, 1, grid, MPI_STATUS_IGNORE, ierr)
  call MPI_Neighbor_allgather(ints, 2, MPI_INTEGER, more, 2, MPI_INTEGER, grid, ierr)
  call MPI_Comm_free(grid, ierr)
  call MPI_Barrier(MPI_COMM_SELF, ierr)

  bytes = 64 * 4
  call MPI_Win_create(more, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  disp = 0
  call MPI_Put(ints, 2, MPI_INTEGER, right, disp, 2, MPI_INTEGER, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  call MPI_Win_free(window, ierr)
  path = merge('tour.low ', 'tour.high', rank < nranks / 2)
  call MPI_File_open(half, path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, ierr)
  offset = 16 * half_rank
  call MPI_File_write_at_all(file, offset, ints, 4, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call MPI_File_sync(file, ierr)
  call MPI_File_read_at(file, offset, more, 3, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call MPI_File_close(file, ierr)
  call MPI_Comm_free(half, ierr)

  if (rank == 0) print '(a, i0)', 'done ', more(1) + more(3)
  call MPI_Finalize(ierr)
end program tour
