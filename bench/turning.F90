! SPDX-License-Identifier: Apache-2.0
! The stencil of bench/turning.c in Fortran: the same arguments, the same messages, the same lines.
#include "commlens.f90"

module waves_of_rank
  use mpi
  use commlens
  implicit none
  integer, parameter :: width = 4
  integer :: comm, rank, ranks, numbers, moved(2) = 0, error
  real(8), allocatable :: waves(:, :), arriving(:, :), halos(:, :), border(:)

contains

  integer function neighbour(right, down)
    integer, intent(in) :: right, down
    neighbour = modulo(rank / width + down, ranks / width) * width + modulo(mod(rank, width) + right, width)
  end function

  subroutine fill(values, origin)
    real(8), intent(out) :: values(:)
    integer, intent(in) :: origin
    integer :: i
    values = [(origin * 1000d0 + mod(i, 1000), i=0, size(values) - 1)]
  end subroutine

  subroutine check(values, origin)
    real(8), intent(in) :: values(:)
    integer, intent(in) :: origin
    real(8) :: right(size(values))
    call fill(right, origin)
    if (any(values /= right)) then
      print *, 'turning: wrong numbers'
      call MPI_Abort(MPI_COMM_WORLD, 1, error)
    end if
  end subroutine

  subroutine step(right, down)
    integer, intent(in) :: right, down
    integer :: around(4), flow(2), requests(12), w, i
    around = [neighbour(1, 0), neighbour(-1, 0), neighbour(0, 1), neighbour(0, -1)]
    flow = [neighbour(right, down), neighbour(-right, -down)]
    do w = 1, 2
      call MPI_Irecv(arriving(:, w), numbers, MPI_DOUBLE_PRECISION, flow(3 - w), w, comm, requests(w), error)
      call MPI_Isend(waves(:, w), numbers, MPI_DOUBLE_PRECISION, flow(w), w, comm, requests(2 + w), error)
    end do
    do i = 1, 4
      call MPI_Irecv(halos(:, i), numbers / 16, MPI_DOUBLE_PRECISION, around(i), 3 + ieor(i - 1, 1), comm, &
                     requests(4 + i), error)
      call MPI_Isend(border, numbers / 16, MPI_DOUBLE_PRECISION, around(i), 2 + i, comm, requests(8 + i), error)
    end do
    call MPI_Waitall(12, requests, MPI_STATUSES_IGNORE, error)
    moved = moved + [right, down]
    waves = arriving
    call check(waves(:, 1), neighbour(-moved(1), -moved(2)))
    call check(waves(:, 2), neighbour(moved(1), moved(2)))
    do i = 1, 4
      call check(halos(:, i), around(i))
    end do
  end subroutine

  ! Returns the outcome, and the seconds of the call and of moving the data.
  subroutine reorder(said)
    real(8), intent(out) :: said(3)
    integer :: made, outcome, old, source, w, before(ranks)
    real(8) :: begin, called
    logical :: is_other
    begin = MPI_Wtime()
    call commlens_reorder(comm, made, is_other, outcome)
    called = MPI_Wtime()
    if (outcome < 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
    call MPI_Comm_free(comm, error)
    comm = made
    if (is_other) then
      call commlens_pause()
      old = rank
      call MPI_Comm_rank(comm, rank, error)
      call MPI_Allgather(old, 1, MPI_INTEGER, before, 1, MPI_INTEGER, comm, error)
      source = findloc(before, rank, 1) - 1
      do w = 1, 2
        call MPI_Sendrecv(waves(:, w), numbers, MPI_DOUBLE_PRECISION, old, w, arriving(:, w), numbers, &
                          MPI_DOUBLE_PRECISION, source, w, comm, MPI_STATUS_IGNORE, error)
      end do
      waves = arriving
      call fill(border, rank)
      call commlens_resume()
    end if
    said = [real(outcome, 8), called - begin, MPI_Wtime() - called]
  end subroutine
end module

program turning
  use waves_of_rank
  implicit none
  character(len=16) :: argument
  integer :: arguments(3), i, s, called, first
  real(8) :: begin
  real(8), allocatable :: seconds(:), mean(:), calls(:, :), mean_calls(:, :)
  call MPI_Init(error)
  do i = 1, 3
    call get_command_argument(i, argument)
    read (argument, *) arguments(i)
  end do
  numbers = arguments(1)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
  call MPI_Comm_rank(comm, rank, error)
  call MPI_Comm_size(comm, ranks, error)
  allocate (waves(numbers, 2), arriving(numbers, 2), halos(numbers / 16, 4), border(numbers / 16))
  allocate (seconds(arguments(2)), mean(arguments(2)), calls(3, arguments(2)), mean_calls(3, arguments(2)))
  call fill(waves(:, 1), rank)
  call fill(waves(:, 2), rank)
  call fill(border, rank)
  called = 0
  call MPI_Barrier(comm, error)
  do s = 1, arguments(2)
    begin = MPI_Wtime()
    call step(merge(0, 1, s <= arguments(2) / 2), 1)
    seconds(s) = MPI_Wtime() - begin
    if (arguments(3) == 0 .or. s == arguments(2)) cycle
    if (mod(s, arguments(3)) == 0) then
      called = called + 1
      call reorder(calls(:, called))
    end if
  end do
  call MPI_Reduce(seconds, mean, size(seconds), MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  call MPI_Reduce(calls, mean_calls, 3 * called, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, first, error)
  if (first == 0) then
    do s = 1, arguments(2)
      print '(a, i0, 1x, f0.6)', 'step ', s, mean(s) / ranks
    end do
    do i = 1, called
      print '(a, i0, 1x, i0, 1x, f0.6, 1x, f0.6)', 'call ', i * arguments(3), nint(mean_calls(1, i) / ranks), &
        mean_calls(2, i) / ranks, mean_calls(3, i) / ranks
    end do
  end if
  call MPI_Comm_free(comm, error)
  call MPI_Finalize(error)
end program
