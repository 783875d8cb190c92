! SPDX-License-Identifier: Apache-2.0
! As unmatched.c.
#include "commlens.f90"
program unmatched
  use mpi
  use commlens
  implicit none
  integer :: error
  call MPI_Init(error)
  call commlens_begin('outer')
  call commlens_begin(commlens_region('inner'))
  call commlens_end('outer')
  call commlens_end(commlens_region('never'))
  call commlens_loop_iteration()
  call MPI_Finalize(error)
end program
