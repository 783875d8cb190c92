/* SPDX-License-Identifier: Apache-2.0
 * A library that calls MPI when the interpreter that loaded it has ended. */
#include <mpi.h>
#include <stdlib.h>

void call_at_exit(void);

static void call(void) {
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_SELF);
  MPI_Finalize();
}

void call_at_exit(void) {
  MPI_Barrier(MPI_COMM_SELF);
  atexit(call);
}
