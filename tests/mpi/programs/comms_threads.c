/* SPDX-License-Identifier: Apache-2.0
 * Three threads make communicators at the same time, each from a parent of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, CHILDREN = 40 };

struct work {
  int number;
  MPI_Comm parent;
};

static void* make(void* argument) {
  struct work const* const work = argument;
  int rank;
  MPI_Comm_rank(work->parent, &rank);
  for (int i = 1; i <= CHILDREN; ++i) {
    MPI_Comm child;
    if (i % 2)
      MPI_Comm_dup(work->parent, &child);
    else
      MPI_Comm_split(work->parent, 0, rank, &child);
    for (int k = 0; k < work->number + i % 3; ++k) MPI_Barrier(child);
    MPI_Comm_free(&child);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (provided != MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 0;
  }
  struct work work[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    work[i].number = i + 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &work[i].parent);
  }
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, make, &work[i]);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&work[i].parent);
  if (rank == 0) puts("done");
  MPI_Finalize();
  return 0;
}
