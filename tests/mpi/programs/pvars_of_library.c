/* SPDX-License-Identifier: Apache-2.0
 * Collectives and unexpected messages in known numbers.  Reads a variable itself, too, if its name is an argument, and
 * prints what it was. */
#include <mpi.h>
#include <stdio.h>

static unsigned long own_value(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long value = 0;
  if (MPI_T_pvar_read(session, handle, &value) != MPI_SUCCESS) printf("cannot read\n");
  return value;
}

int main(int argc, char** argv) {
  int rank, provided, index, count, numbers[3] = {1, 2, 3}, sums[3];
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Allreduce(numbers, sums, 3, MPI_INT, MPI_SUM, world);
  if (argc > 1) {
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index(argv[1], MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) printf("no variable\n");
    MPI_T_pvar_handle_alloc(session, index, &world, &handle, &count);
    MPI_T_pvar_start(session, handle);
  }
  for (int i = 0; i < 4; ++i) MPI_Allreduce(numbers, sums, 3, MPI_INT, MPI_SUM, world);
  if (argc > 1) {
    MPI_T_pvar_stop(session, handle);
    printf("%d counts %lu\n", rank, own_value(session, handle));
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
  }
  for (int i = 0; i < 3 && rank == 0; ++i) MPI_Send(numbers, 1, MPI_INT, 1, 1, world);
  if (rank == 0) MPI_Send(numbers, 1, MPI_INT, 1, 2, world);
  if (rank == 1) MPI_Recv(numbers, 1, MPI_INT, 0, 2, world, MPI_STATUS_IGNORE);
  MPI_Pcontrol(3); /* a flush, while three messages wait */
  if (rank == 0) MPI_Recv(numbers, 1, MPI_INT, 1, 3, world, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(numbers, 1, MPI_INT, 0, 3, world);
  for (int i = 0; i < 3 && rank == 1; ++i) MPI_Recv(numbers, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
  MPI_Barrier(world);
  MPI_Finalize();
  return 0;
}
