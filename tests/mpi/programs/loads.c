/* SPDX-License-Identifier: Apache-2.0
 * A program that loads libraries: `loads PLUGIN`; the plugin is this file again, with -DPLUGIN. */
#include <mpi.h>
#include <stdio.h>

#ifdef PLUGIN
#include <pthread.h>

/* All procedures here are called for the first time, while the dynamic linker loads us. */
static void* helps(void* unused) {
  (void)unused;
  int rank, out[2] = {1, 2}, in[2] = {0, 0};
  MPI_Datatype pair;
  MPI_Request requests[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Irecv(in, 1, pair, 0, 3, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(out, 2, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&pair);
  printf("helper of %d: %d %d\n", rank, in[0], in[1]);
  fflush(stdout);
  return NULL;
}

__attribute__((constructor)) static void waits_for_its_helper(void) {
  pthread_t helper;
  pthread_create(&helper, NULL, helps, NULL);
  pthread_join(helper, NULL);
}
#else
#include <dlfcn.h>

int main(int argc, char** argv) {
  int level, size;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE || dlopen(argv[1], RTLD_NOW) == NULL) return 2;
  if (dlopen("/no/such/plugin.so", RTLD_NOW) != NULL) return 3;
  MPI_Comm_size(MPI_COMM_WORLD, &size); /* before the program asks what went wrong */
  printf("%d ranks: %s\n", size, dlerror());
  MPI_Finalize();
  return 0;
}
#endif
