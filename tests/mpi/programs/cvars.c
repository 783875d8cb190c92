/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the MPI library's control variables that are whole numbers, one per line: name value. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int provided, number;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_cvar_get_num(&number);
  for (int i = 0; i < number; i++) {
    char name[256];
    int length = sizeof name, no_text = 0, verbosity, bind, scope, count, value;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &values, NULL, &no_text, &bind, &scope)) continue;
    if (type != MPI_INT || bind != MPI_T_BIND_NO_OBJECT) continue;
    if (MPI_T_cvar_handle_alloc(i, NULL, &handle, &count)) continue;
    if (count == 1 && !MPI_T_cvar_read(handle, &value)) printf("%s %d\n", name, value);
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
