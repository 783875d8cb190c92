/* SPDX-License-Identifier: Apache-2.0
 * Threads of their own begin and end regions, with ever new names, while the main thread is in MPI_Finalize. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { threads = 3, names = 5000 };

static atomic_int begun, is_over;

static void* tell(void* argument) {
  const char* const who = argument;
  for (int i = 0; !is_over; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%s %d", who, i % names);
    commlens_begin("outer");
    commlens_begin(name);
    commlens_tag("name", name);
    commlens_record(commlens_metric(who, "1"), 1);
    commlens_end(NULL);
    commlens_end("outer");
    ++begun;
  }
  return NULL;
}

int main(int argc, char** argv) {
  static char who[threads][8] = {"a", "b", "c"};
  pthread_t ids[threads];
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, tell, who[i]);
  while (begun < 100) {
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  is_over = 1;
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  puts("done");
  return 0;
}
