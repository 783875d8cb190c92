/* SPDX-License-Identifier: Apache-2.0
 * MPI_THREAD_MULTIPLE: thread n makes 10 (n + 1) exchanges with itself in a region of its own, all at once, and n + 1
 * in a region within it. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { threads = 4 };

static MPI_Comm comms[threads];
static pthread_barrier_t all;

static void exchange(MPI_Comm comm, int n) {
  int out = 1, in;
  for (int i = 0; i < n; ++i) MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
}

static void* work(void* argument) {
  const int n = *(const int*)argument;
  char name[32];
  snprintf(name, sizeof name, "thread %d", n);
  pthread_barrier_wait(&all);
  for (int i = 0; i < 10; ++i) {
    commlens_begin(name);
    exchange(comms[n], n + 1);
    if (i == 5) {
      commlens_begin("within");
      exchange(comms[n], n + 1);
      commlens_end("within");
    }
    commlens_end(name);
  }
  commlens_begin("left open");
  return NULL;
}

int main(int argc, char** argv) {
  int provided, numbers[threads];
  pthread_t ids[threads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 1;
  pthread_barrier_init(&all, NULL, threads);
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
  commlens_begin("main");
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    pthread_create(&ids[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  exchange(comms[0], 3);
  commlens_end("main");
  MPI_Finalize();
  return 0;
}
