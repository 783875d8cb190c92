// SPDX-License-Identifier: Apache-2.0
// Writes the integer control variable argv[1] through MPI_T; exits with 3 if the library refuses.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int provided, index, count, value = atoi(argv[2]);
  MPI_T_cvar_handle handle;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  int code = MPI_T_cvar_get_index(argv[1], &index);
  if (code == MPI_SUCCESS) code = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
  if (code == MPI_SUCCESS) code = MPI_T_cvar_write(handle, &value);
  if (code == MPI_SUCCESS) code = MPI_T_cvar_handle_free(&handle);
  MPI_T_finalize();
  MPI_Finalize();
  return code == MPI_SUCCESS ? 0 : 3;
}
