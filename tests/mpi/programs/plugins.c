/* SPDX-License-Identifier: Apache-2.0
 * Plugins that call MPI and are unloaded before MPI_Finalize: `plugins FILE...`.  One may come to lie where another
 * one lay. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    void* const plugin = dlopen(argv[i], RTLD_NOW | (i % 2 ? RTLD_LOCAL : RTLD_GLOBAL));
    if (plugin == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    int (*const work)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(plugin, "work");
    int const sum = work(MPI_COMM_WORLD);
    if (rank == 0) printf("plugin %d: %d\n", i, sum);
    dlclose(plugin);
    if (dlopen(argv[i], RTLD_NOLOAD | RTLD_NOW) != NULL) puts("still there");
  }
  MPI_Finalize();
  return 0;
}
