/* SPDX-License-Identifier: Apache-2.0
 * Calls some of what it imports: `imports` nothing at all; `imports send` a message to itself; `imports plugin FILE`
 * loads FILE with RTLD_DEEPBIND, which finds MPI_Barrier past everything that is preloaded, and calls it.
 * Compiled with -DPLUGIN it is that file. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#ifdef PLUGIN
int plugin(void) { return MPI_Barrier(MPI_COMM_WORLD); }
#else
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const what = argc > 1 ? argv[1] : "";
  int me = 0;
  if (strcmp(what, "send") == 0) {
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Sendrecv_replace(&me, 1, MPI_INT, me, 0, me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "never") == 0) MPI_Alltoall(&me, 1, MPI_INT, &me, 1, MPI_INT, MPI_COMM_SELF);
  if (strcmp(what, "plugin") == 0) {
    void* const file = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
    int (*const plugin)(void) = file == NULL ? NULL : (int (*)(void))dlsym(file, "plugin");
    if (plugin == NULL || plugin() != MPI_SUCCESS) return 1;
  }
  printf("%d\n", MPI_Wtime() > 0);
  MPI_Finalize();
  return 0;
}
#endif
