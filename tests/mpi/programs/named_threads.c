/* SPDX-License-Identifier: Apache-2.0
 * Threads with names, and known calls on communicators of their own.  First argument:
 *   named   THREADS threads, of which the last one is still there in MPI_Finalize
 *   killed  the same; all ranks kill themselves when all have returned from their last call, as files in the second
 *           argument tell
 *   many    MANY threads one after the other, each with one call */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <commlens/commlens.h>

enum { THREADS = 4, MANY = 700, ALLREDUCES = 10, LEFT = 3 };
static MPI_Comm comms[THREADS];
static int rank, size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int is_parked, may_end;

static void name(const char* text) { pthread_setname_np(pthread_self(), text); }

static void park(void) {
  pthread_mutex_lock(&lock);
  is_parked = 1;
  pthread_cond_broadcast(&change);
  while (!may_end) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}

/* Thread n: 10 (n + 1) reductions of n + 1 doubles in a region, and a message to the next rank; thread 1 leaves the
 * completion of its receive to the main thread.  The name is set after the first call. */
static MPI_Request left;
static int into;
static void* work(void* number) {
  const int n = (int)(size_t)number;
  double in[THREADS] = {0}, out[THREADS];
  char text[16];
  const commlens_region_t region = commlens_region(n % 2 == 0 ? "even" : "odd");
  for (int i = 0; i < ALLREDUCES * (n + 1); ++i) {
    commlens_begin_region(region);
    MPI_Allreduce(in, out, n + 1, MPI_DOUBLE, MPI_SUM, comms[n]);
    commlens_end_region(region);
    snprintf(text, sizeof text, "worker %d", n);
    if (i == 0) name(text);
  }
  int value = n, got;
  MPI_Request sent;
  MPI_Isend(&value, 1, MPI_INT, (rank + 1) % size, 0, comms[n], &sent);
  if (n == 1) {
    MPI_Irecv(&into, 1, MPI_INT, (rank + size - 1) % size, 0, comms[n], &left);
  } else {
    MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, comms[n], MPI_STATUS_IGNORE);
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  if (n == LEFT) {
    name("last\xff\n");
    park();
  }
  return NULL;
}

static void* one_call(void* unused) {
  MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  return unused;
}

static void wait_for_all(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/returned.%d", folder, rank);
  fclose(fopen(path, "w"));
  for (int other = 0; other < size; ++other) {
    snprintf(path, sizeof path, "%s/returned.%d", folder, other);
    while (access(path, F_OK) != 0) usleep(1000);
  }
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE || argc < 2) abort();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[1], "many") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; ++i) {
      pthread_create(&threads[0], NULL, one_call, NULL);
      pthread_join(threads[0], NULL);
    }
    MPI_Finalize();
    return 0;
  }
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  /* One after the other, so that their numbers are known. */
  for (int i = 0; i < THREADS; ++i) {
    pthread_create(&threads[i], NULL, work, (void*)(size_t)i);
    if (i != LEFT) pthread_join(threads[i], NULL);
  }
  pthread_mutex_lock(&lock);
  while (!is_parked) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
  MPI_Wait(&left, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[1], "killed") == 0) {
    wait_for_all(argv[2]);
    raise(SIGKILL);
  }
  MPI_Finalize();
  return 0;
}
