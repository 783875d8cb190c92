/* SPDX-License-Identifier: Apache-2.0
 * THREADS of each rank at once: CALLS messages around a ring on the communicator they share, told apart by their tags,
 * and as many sums, each thread on a communicator of its own. */
#include <pthread.h>

#include "app.h"

typedef struct {
  int number;
  MPI_Comm own;
  long calls, faults;
  double last;
} Thread;

static void* work(void* argument) {
  Thread* const me = argument;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  for (long i = 0; i < me->calls; ++i) {
    const double out = (double)(i * (me->number + 1) + rank);
    double in = -1;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, right, me->number, &in, 1, MPI_DOUBLE, left, me->number, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    me->faults += in != out - rank + left;
    MPI_Allreduce(&out, &me->last, 1, MPI_DOUBLE, MPI_SUM, me->own);
    me->faults += me->last != (out - rank) * ranks + ranks * (ranks - 1) / 2.0;
  }
  return NULL;
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const long* const arguments = app_begin(argc, argv, "threads THREADS CALLS");
  const long n_threads = arguments[0];
  if (level != MPI_THREAD_MULTIPLE) app_refuse("the MPI library has no MPI_THREAD_MULTIPLE");
  Thread* const threads = app_array((size_t)n_threads, sizeof *threads);
  pthread_t* const handles = app_array((size_t)n_threads, sizeof *handles);
  for (int i = 0; i < n_threads; ++i) {
    threads[i] = (Thread){.number = i, .calls = arguments[1]};
    MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].own);
  }
  for (int i = 0; i < n_threads; ++i) {
    if (pthread_create(&handles[i], NULL, work, &threads[i]) != 0) {
      fprintf(stderr, "threads: cannot start thread %d\n", i);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  double sum = 0;
  for (int i = 0; i < n_threads; ++i) {
    pthread_join(handles[i], NULL);
    app_faults += threads[i].faults;
    sum += threads[i].last;
    MPI_Comm_free(&threads[i].own);
  }
  free(threads), free(handles);
  return app_end(sum);
}
