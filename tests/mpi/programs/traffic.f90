! SPDX-License-Identifier: Apache-2.0
! traffic PATTERN: the same messages as traffic.c, ring or sparse, in Fortran.
program traffic
  use mpi
  implicit none
  integer, parameter :: largest = 4096, most = 4096
  character(len=16) :: pattern
  integer :: rank, n, columns, i, ierr, comms(4)

  call MPI_Init(ierr)
  call get_command_argument(1, pattern)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  columns = 1
  do while ((columns + 1)**2 <= n)
    columns = columns + 1
  end do
  comms(1) = MPI_COMM_WORLD
  call MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, comms(2), ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, columns), rank, comms(3), ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comms(4), ierr)
  do i = 1, 4
    call talk(comms(i))
    if (i > 1) call MPI_Comm_free(comms(i), ierr)
  end do
  call MPI_Finalize(ierr)

contains

  integer function messages_of(s, d, size)
    integer, intent(in) :: s, d, size
    integer(8) :: mixed
    messages_of = 0
    if (pattern == "ring") then
      if (d == mod(s + 1, size)) messages_of = 3
    else
      mixed = iand(int(s * 31 + d * 17, 8) * 2654435761_8, 4294967295_8)
      if (mixed / 268435456_8 < 3) messages_of = 1 + mod(s * d, 4)
    end if
  end function

  subroutine talk(comm)
    integer, intent(in) :: comm
    character(len=1) :: out(largest), in(largest)
    integer :: me, size, s, d, k, used, source, requests(most)
    call MPI_Comm_rank(comm, me, ierr)
    call MPI_Comm_size(comm, size, ierr)
    used = 0
    out = "x"
    do s = 0, size - 1
      do k = 0, messages_of(s, me, size) - 1
        source = s
        if (mod(s + k, 2) == 0) source = MPI_ANY_SOURCE
        used = used + 1
        call MPI_Irecv(in, largest, MPI_CHARACTER, source, 4 * s + k, comm, requests(used), ierr)
      end do
    end do
    do d = 0, size - 1
      do k = 0, messages_of(me, d, size) - 1
        used = used + 1
        call MPI_Isend(out, mod(7 * me + 13 * d + 101 * k, 3000), MPI_CHARACTER, d, 4 * me + k, comm, &
                       requests(used), ierr)
      end do
    end do
    call MPI_Waitall(used, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine

end program
