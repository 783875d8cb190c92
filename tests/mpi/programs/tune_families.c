// SPDX-License-Identifier: Apache-2.0
// Creates communicators of equal size at different call sites.  Arguments: "multiple" asks for MPI_THREAD_MULTIPLE;
// "apart" lets rank 0 create the second communicator at another call site than the others.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int value_of(const char* name) {
  int index, count, value[2] = {-1, 0};
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return -2;
  if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return -3;
  MPI_T_cvar_read(handle, value);
  MPI_T_cvar_handle_free(&handle);
  return value[0];
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  int provided, rank;
  MPI_Init_thread(&argc, &argv, strcmp(how, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comms[4];
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  if (strcmp(how, "apart") == 0 && rank == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
  } else {
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[1]);
  }
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[2]);
  MPI_Comm_dup(comms[1], &comms[3]);
  static const char* const names[] = {"plain", "first", "second", "copy"};
  int from[512] = {0}, to[512];
  for (int i = 0; i < 4; ++i) MPI_Comm_set_name(comms[i], names[i]);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 10; ++k) MPI_Alltoall(from, 8, MPI_INT, to, 8, MPI_INT, comms[i]);
  }
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (rank == 0) printf("alltoall_algorithm %d\n", value_of("coll_tuned_alltoall_algorithm"));
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
