! SPDX-License-Identifier: Apache-2.0
! The story that every language tells, here with the module for Fortran.
program story
  use, intrinsic :: iso_c_binding, only: c_double, c_float, c_int64_t
  use, intrinsic :: iso_fortran_env, only: error_unit
  use commlens
  implicit none
  type(commlens_region_t) :: solve
  type(commlens_metric_t) :: residual, cells
  character(len=20) :: name
  logical :: written
  integer :: step, answer

  solve = commlens_region('solve')
  residual = commlens_metric('residual', '1 ')
  cells = commlens_metric('cells')

  call commlens_begin('main')
  call commlens_loop_begin('time steps', COMMLENS_LOOP_EACH)
  do step = 0, 2
    call commlens_loop_iteration()
    call commlens_begin(solve)
    if (step == 0) then
      call commlens_record(residual, 1.0_c_float)
    else
      call commlens_record(residual, 1.0_c_double / 2**step)
    end if
    call commlens_end(solve)
  end do
  call commlens_loop_end('time steps')
  call commlens_loop_begin('sweeps')
  call commlens_loop_iteration()
  call commlens_record(cells, 4096_c_int64_t)
  call commlens_loop_end('sweeps')

  name = 'padded'
  call commlens_begin(name)
  call commlens_tag('kind  ', 'IO ')
  call commlens_end(name)
  call commlens_begin('Größe µ/流')
  call commlens_end('Größe µ/流   ')
  call commlens_begin('   ')
  call commlens_end('')
  call commlens_begin(repeat('x', 1000))
  call commlens_end(repeat('x', 1000))
  answer = early(42)
  call commlens_begin('thrown')
  call commlens_end('thrown')

  call commlens_pause()
  call commlens_resume()
  call commlens_reset()
  call commlens_flush(written)
  call commlens_end('main')
  print '(a, i0)', 'answer ', answer
  write (error_unit, '(3a, i0, a, i0)') "version '", commlens_version(), "' active ", merge(1, 0, commlens_active()), &
    ' written ', merge(1, 0, written)

contains

  integer function early(value)
    integer, intent(in) :: value
    call commlens_begin('early')
    early = value
    if (value > 0) then
      call commlens_end('early')
      return
    end if
    call commlens_end('early')
  end function

end program
