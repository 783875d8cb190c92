! SPDX-License-Identifier: Apache-2.0
! What annotated.c does, with the module of fortran/commlens.f90.
#include "commlens.f90"
program main
  use commlens
#ifdef USE_MPI_F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, ierror, execution, i
  type(commlens_metric_t) :: cells
  cells = commlens_metric('cells', '1')
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  do execution = 1, 2
    call commlens_begin('main   ')
    call commlens_tag('kind', 'COMP')
    call commlens_loop_begin('steps', COMMLENS_LOOP_EACH)
    do i = 0, 2
      call commlens_loop_iteration()
      call commlens_begin('exchange')
      call commlens_begin('comm')
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      call commlens_end('comm')
      call commlens_end('exchange')
      if (mod(rank, 2) == 1) then
        call commlens_begin('update')
        call commlens_record(cells, dble(10 * i + rank))
        call commlens_end('update')
      end if
    end do
    call commlens_loop_end('steps')
    call commlens_end('main')
  end do
  call MPI_Finalize(ierror)
end program
