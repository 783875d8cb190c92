! SPDX-License-Identifier: Apache-2.0
!
! The Fortran 2003 interface of commlens.  commlens.h describes the procedures.  Names need no terminating null, and
! trailing blanks are ignored.  A program compiles this file with its own compiler, because module files differ between
! compilers, and links libcommlens-api.
module commlens
  use, intrinsic :: iso_c_binding, only: c_double, c_float, c_int, c_int32_t, c_int64_t, c_null_ptr, c_ptr
  implicit none
  private

  public :: commlens_begin, commlens_end, commlens_region, commlens_region_t
  public :: commlens_loop_begin, commlens_loop_iteration, commlens_loop_end, COMMLENS_LOOP_SUM, COMMLENS_LOOP_EACH
  public :: commlens_iteration_begin
  public :: commlens_metric, commlens_metric_t, commlens_record, commlens_tag
  public :: commlens_version, commlens_active, commlens_pause, commlens_resume, commlens_reset, commlens_flush
  public :: commlens_flush_to, commlens_watch, commlens_watch_t, commlens_watch_start, commlens_watch_stop
  public :: commlens_watch_reset, commlens_watch_snapshot, commlens_watch_size, commlens_watch_read, commlens_watch_free
  public :: commlens_reorder
  public :: COMMLENS_SENT, COMMLENS_RECEIVED, COMMLENS_WRITTEN, COMMLENS_READ, COMMLENS_COLLECTIVE

  integer, parameter :: COMMLENS_LOOP_SUM = 0, COMMLENS_LOOP_EACH = 1
  integer, parameter :: COMMLENS_SENT = 0, COMMLENS_RECEIVED = 1, COMMLENS_WRITTEN = 2, COMMLENS_READ = 3
  integer, parameter :: COMMLENS_COLLECTIVE = 4

  ! Handles: one pointer each.  Passed by reference, because some compilers cannot pass a type by value.
  type, bind(C) :: commlens_region_t
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(C) :: commlens_metric_t
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(C) :: commlens_watch_t
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! Frequent calls go directly to the procedures of core/api/fortran77.c, or to the C functions if they have no
  ! arguments.

  ! Begins a region, by its name or by the handle that commlens_region returns.
  interface commlens_begin
    subroutine commlens_begin_f(name)
      character(len=*), intent(in) :: name
    end subroutine

    subroutine commlens_begin_region_f(region)
      import :: commlens_region_t
      type(commlens_region_t), intent(in) :: region
    end subroutine
  end interface

  ! Ends a region, by its name or its handle; without an argument, the innermost region.
  interface commlens_end
    subroutine commlens_end_f(name)
      character(len=*), intent(in) :: name
    end subroutine

    subroutine commlens_end_region_f(region)
      import :: commlens_region_t
      type(commlens_region_t), intent(in) :: region
    end subroutine

    module procedure end_innermost
  end interface

  interface commlens_loop_end
    subroutine commlens_loop_end_f(name)
      character(len=*), intent(in) :: name
    end subroutine
  end interface

  interface commlens_tag
    subroutine commlens_tag_f(name, value)
      character(len=*), intent(in) :: name, value
    end subroutine
  end interface

  interface commlens_record
    subroutine commlens_record_f(metric, value)
      import :: c_double, commlens_metric_t
      type(commlens_metric_t), intent(in) :: metric
      real(c_double), intent(in) :: value
    end subroutine

    module procedure record_single, record_int32, record_int64
  end interface

  interface
    subroutine commlens_region_f(name, region)
      import :: commlens_region_t
      character(len=*), intent(in) :: name
      type(commlens_region_t), intent(out) :: region
    end subroutine

    subroutine commlens_loop_begin_f(name, mode)
      import :: c_int
      character(len=*), intent(in) :: name
      integer(c_int), intent(in) :: mode
    end subroutine

    subroutine commlens_loop_iteration() bind(C, name="commlens_loop_iteration")
    end subroutine

    subroutine commlens_iteration_begin_f(name, mode, number)
      import :: c_int
      character(len=*), intent(in) :: name
      integer(c_int), intent(in) :: mode, number
    end subroutine

    subroutine commlens_metric_f(name, unit, metric)
      import :: commlens_metric_t
      character(len=*), intent(in) :: name, unit
      type(commlens_metric_t), intent(out) :: metric
    end subroutine

    subroutine commlens_version_f(version)
      character(len=*), intent(out) :: version
    end subroutine

    subroutine commlens_pause() bind(C, name="commlens_pause")
    end subroutine

    subroutine commlens_resume() bind(C, name="commlens_resume")
    end subroutine

    subroutine commlens_reset() bind(C, name="commlens_reset")
    end subroutine

    subroutine end_c(name) bind(C, name="commlens_end")
      import :: c_ptr
      type(c_ptr), value :: name
    end subroutine

    subroutine commlens_active_f(active)
      import :: c_int
      integer(c_int), intent(out) :: active
    end subroutine

    subroutine commlens_flush_to_f(folder, error)
      import :: c_int
      character(len=*), intent(in) :: folder
      integer(c_int), intent(out) :: error
    end subroutine

    subroutine commlens_watch_f(comm, kind, watch)
      import :: c_int, commlens_watch_t
      integer(c_int), intent(in) :: comm, kind
      type(commlens_watch_t), intent(out) :: watch
    end subroutine

    subroutine commlens_watch_start_f(watch)
      import :: commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
    end subroutine

    subroutine commlens_watch_stop_f(watch)
      import :: commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
    end subroutine

    subroutine commlens_watch_reset_f(watch)
      import :: commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
    end subroutine

    subroutine commlens_watch_snapshot_f(watch, snapshot)
      import :: commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
      type(commlens_watch_t), intent(out) :: snapshot
    end subroutine

    subroutine commlens_watch_size_f(watch, size)
      import :: c_int, commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
      integer(c_int), intent(out) :: size
    end subroutine

    subroutine commlens_watch_read_f(watch, messages, bytes)
      import :: c_int64_t, commlens_watch_t
      type(commlens_watch_t), intent(in) :: watch
      integer(c_int64_t), intent(inout) :: messages(*), bytes(*)
    end subroutine

    subroutine commlens_watch_free_f(watch)
      import :: commlens_watch_t
      type(commlens_watch_t), intent(inout) :: watch
    end subroutine

    subroutine commlens_reorder_f(comm, newcomm, outcome)
      import :: c_int
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(inout) :: newcomm
      integer(c_int), intent(out) :: outcome
    end subroutine

    subroutine commlens_flush_f(error)
      import :: c_int
      integer(c_int), intent(out) :: error
    end subroutine
  end interface

contains

  subroutine end_innermost()
    call end_c(c_null_ptr)
  end subroutine

  function commlens_region(name) result(region)
    character(len=*), intent(in) :: name
    type(commlens_region_t) :: region
    call commlens_region_f(name, region)
  end function

  ! mode: COMMLENS_LOOP_SUM by default.
  subroutine commlens_loop_begin(name, mode)
    character(len=*), intent(in) :: name
    integer, intent(in), optional :: mode
    integer(c_int) :: chosen
    chosen = COMMLENS_LOOP_SUM
    if (present(mode)) chosen = int(mode, c_int)
    call commlens_loop_begin_f(name, chosen)
  end subroutine

  ! number: of the iteration, from 0.
  subroutine commlens_iteration_begin(name, mode, number)
    character(len=*), intent(in) :: name
    integer, intent(in) :: mode, number
    call commlens_iteration_begin_f(name, int(mode, c_int), int(number, c_int))
  end subroutine

  function commlens_metric(name, unit) result(metric)
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: unit
    type(commlens_metric_t) :: metric
    if (present(unit)) then
      call commlens_metric_f(name, unit, metric)
    else
      call commlens_metric_f(name, '', metric)
    end if
  end function

  subroutine record_single(metric, value)
    type(commlens_metric_t), intent(in) :: metric
    real(c_float), intent(in) :: value
    call commlens_record_f(metric, real(value, c_double))
  end subroutine

  subroutine record_int32(metric, value)
    type(commlens_metric_t), intent(in) :: metric
    integer(c_int32_t), intent(in) :: value
    call commlens_record_f(metric, real(value, c_double))
  end subroutine

  subroutine record_int64(metric, value)
    type(commlens_metric_t), intent(in) :: metric
    integer(c_int64_t), intent(in) :: value
    call commlens_record_f(metric, real(value, c_double))
  end subroutine

  ! Returns the version of the profiler, or an empty text if none is loaded.
  function commlens_version() result(version)
    character(len=:), allocatable :: version
    character(len=64) :: text
    call commlens_version_f(text)
    version = trim(text)
  end function

  function commlens_active() result(active)
    logical :: active
    integer(c_int) :: number
    call commlens_active_f(number)
    active = number /= 0
  end function

  ! written: false if nothing is counted, or if the copy cannot be written.
  subroutine commlens_flush(written)
    logical, intent(out), optional :: written
    integer(c_int) :: error
    call commlens_flush_f(error)
    if (present(written)) written = error == 0
  end subroutine

  subroutine commlens_flush_to(folder, written)
    character(len=*), intent(in) :: folder
    logical, intent(out), optional :: written
    integer(c_int) :: error
    call commlens_flush_to_f(folder, error)
    if (present(written)) written = error == 0
  end subroutine

  ! comm: the integer handle of the communicator; with mpi_f08, comm%MPI_VAL.
  function commlens_watch(comm, kind) result(watch)
    integer, intent(in) :: comm, kind
    type(commlens_watch_t) :: watch
    call commlens_watch_f(int(comm, c_int), int(kind, c_int), watch)
  end function

  subroutine commlens_watch_start(watch)
    type(commlens_watch_t), intent(in) :: watch
    call commlens_watch_start_f(watch)
  end subroutine

  subroutine commlens_watch_stop(watch)
    type(commlens_watch_t), intent(in) :: watch
    call commlens_watch_stop_f(watch)
  end subroutine

  subroutine commlens_watch_reset(watch)
    type(commlens_watch_t), intent(in) :: watch
    call commlens_watch_reset_f(watch)
  end subroutine

  function commlens_watch_snapshot(watch) result(snapshot)
    type(commlens_watch_t), intent(in) :: watch
    type(commlens_watch_t) :: snapshot
    call commlens_watch_snapshot_f(watch, snapshot)
  end function

  integer function commlens_watch_size(watch)
    type(commlens_watch_t), intent(in) :: watch
    integer(c_int) :: number
    call commlens_watch_size_f(watch, number)
    commlens_watch_size = int(number)
  end function

  ! Writes commlens_watch_size(watch) elements to both arrays; without the profiler, none.
  subroutine commlens_watch_read(watch, messages, bytes)
    type(commlens_watch_t), intent(in) :: watch
    integer(c_int64_t), intent(inout) :: messages(*), bytes(*)
    call commlens_watch_read_f(watch, messages, bytes)
  end subroutine

  subroutine commlens_watch_free(watch)
    type(commlens_watch_t), intent(inout) :: watch
    call commlens_watch_free_f(watch)
  end subroutine

  ! comm, newcomm: integer handles; with mpi_f08, comm%MPI_VAL.  reordered: whether the order is another one.
  ! outcome: 1 another order, 0 a duplicate, -1 an error; newcomm is then unchanged.
  subroutine commlens_reorder(comm, newcomm, reordered, outcome)
    integer, intent(in) :: comm
    integer, intent(inout) :: newcomm
    logical, intent(out), optional :: reordered
    integer, intent(out), optional :: outcome
    integer(c_int) :: made, result
    made = 0
    call commlens_reorder_f(int(comm, c_int), made, result)
    if (result >= 0) newcomm = int(made)
    if (present(reordered)) reordered = result == 1
    if (present(outcome)) outcome = int(result)
  end subroutine

end module
