/* SPDX-License-Identifier: Apache-2.0
 * `storm CALLS`: eight threads at once make CALLS calls each, on communicators of their own.
 * A round is ten calls; test_storm.py replays the rounds and knows all counters.  Every second round a thread hands
 * its two requests to its neighbour, which completes them: started here, completed there. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8, CALLS_A_ROUND = 10, PERIOD = 1000, MOST = 4096 };

struct pair {
  MPI_Request requests[2];
};

/* Of every thread two: its neighbour may still be completing the last one, even when the thread has ended. */
static struct pair pairs[THREADS][2];
/* What thread t has for its neighbour t ^ 1; null: nothing. */
static _Atomic(struct pair*) outbox[THREADS];
static MPI_Comm across[THREADS], own[THREADS];
static char out[THREADS][MOST], in[THREADS][2][MOST], more[THREADS][MOST];
static int rounds, rank;

static struct pair* take(int from) {
  struct pair* got;
  while ((got = atomic_exchange(&outbox[from], NULL)) == NULL) sched_yield();
  return got;
}

static void put(int t, struct pair* mine) {
  struct pair* empty = NULL;
  while (!atomic_compare_exchange_weak(&outbox[t], &empty, mine)) {
    empty = NULL;
    sched_yield();
  }
}

static void* storm(void* argument) {
  int const t = *(int const*)argument;
  MPI_Comm comm;
  MPI_Comm_dup(own[t], &comm);
  for (int i = 0; i < rounds; ++i) {
    int const bytes = 100 * t + i % PERIOD;
    int flag, size;
    struct pair* pair = &pairs[t][i / 2 % 2];
    MPI_Irecv(in[t][i / 2 % 2], MOST, MPI_CHAR, rank, 1, across[t], &pair->requests[0]);
    MPI_Isend(out[t], bytes, MPI_CHAR, rank, 1, across[t], &pair->requests[1]);
    if (i % 2) {
      put(t, pair);
      pair = take(t ^ 1);
    }
    MPI_Waitall(2, pair->requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 7, across[t], &flag, MPI_STATUS_IGNORE); /* nobody sends that */
    MPI_Sendrecv(out[t], bytes, MPI_CHAR, 0, 2, more[t], MOST, MPI_CHAR, 0, 2, comm, MPI_STATUS_IGNORE);
    MPI_Send(out[t], bytes, MPI_CHAR, MPI_PROC_NULL, 3, comm);
    MPI_Recv(more[t], bytes, MPI_CHAR, MPI_PROC_NULL, 3, comm, MPI_STATUS_IGNORE);
    MPI_Comm_size(across[t], &size);
    MPI_Allreduce(out[t], more[t], bytes / 8, MPI_DOUBLE, MPI_SUM, comm);
    if (i % PERIOD == PERIOD - 1) {
      MPI_Comm_free(&comm);
      MPI_Barrier(across[t]);
      MPI_Comm_dup(own[t], &comm);
    } else {
      MPI_Comm_rank(comm, &size);
    }
  }
  MPI_Comm_free(&comm);
  return NULL;
}

int main(int argc, char** argv) {
  int provided, numbers[THREADS];
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 1);
  rounds = atoi(argv[1]) / CALLS_A_ROUND;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int t = 0; t < THREADS; ++t) {
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm_dup(MPI_COMM_WORLD, &across[t]);
    snprintf(name, sizeof name, "across %d", t);
    MPI_Comm_set_name(across[t], name);
    MPI_Comm_dup(MPI_COMM_SELF, &own[t]);
    snprintf(name, sizeof name, "own %d of %d", t, rank);
    MPI_Comm_set_name(own[t], name);
  }
  for (int t = 0; t < THREADS; ++t) {
    numbers[t] = t;
    pthread_create(&threads[t], NULL, storm, &numbers[t]);
  }
  for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  MPI_Finalize();
  return 0;
}
