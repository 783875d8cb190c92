/* SPDX-License-Identifier: Apache-2.0
 * What one thread begins another one ends: 2 ranks, MPI_THREAD_MULTIPLE.  Communicators, in this order: P for
 * persistent requests, I the parent of those made by idup, W of a window, S which all threads share. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, IDUPS = 20, THREADS = 4, CALLS = 500 };
static int rank, other;
static MPI_Comm P, I, W, S;
static pthread_barrier_t turn;
static MPI_Request persistent[2], idup;
static MPI_Comm made;
static MPI_Win window;
static int data[16], into[16], target[16];

static void pass(void) { pthread_barrier_wait(&turn); }

/* Three threads in turn: one starts, one completes, one frees. */
static void* starter(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Startall(2, persistent);
    pass();
    pass();
  }
  for (int i = 0; i < IDUPS; ++i) {
    MPI_Comm_idup(I, &made, &idup);
    pass();
    pass();
    pass();
  }
  return unused;
}

static void* completer(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) {
    pass();
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    pass();
  }
  for (int i = 0; i < IDUPS; ++i) {
    pass();
    MPI_Wait(&idup, MPI_STATUS_IGNORE);
    pass();
    pass();
  }
  return unused;
}

static void* user(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) {
    pass();
    pass();
  }
  for (int i = 0; i < IDUPS; ++i) {
    pass();
    pass();
    for (int k = 0; k <= i % 3; ++k) MPI_Barrier(made);
    MPI_Comm_free(&made);
    pass();
  }
  return unused;
}

/* All at once, on one window and one communicator. */
static void* all_at_once(void* number) {
  int const tag = (int)(size_t)number;
  int value = tag, got = -1;
  for (int i = 0; i < CALLS; ++i) {
    MPI_Put(&data[tag], 1, MPI_INT, other, tag, 1, MPI_INT, window);
    MPI_Sendrecv(&value, 1, MPI_INT, other, tag, &got, 1, MPI_INT, other, tag, S, MPI_STATUS_IGNORE);
    if (got != tag) abort();
  }
  return NULL;
}

/* The only creation that threads may begin on one parent at the same time: their tags tell them apart. */
static void* groups(void* number) {
  int const tag = (int)(size_t)number;
  MPI_Group group;
  MPI_Comm_group(S, &group);
  for (int i = 0; i < IDUPS; ++i) {
    MPI_Comm comm;
    MPI_Comm_create_group(S, group, tag, &comm);
    for (int k = 0; k <= tag; ++k) MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&group);
  return NULL;
}

static void together(int n, void* (*const work[])(void*)) {
  pthread_t threads[8];
  pthread_barrier_init(&turn, NULL, (unsigned)n);
  for (int i = 0; i < n; ++i) pthread_create(&threads[i], NULL, work[i], (void*)(size_t)i);
  for (int i = 0; i < n; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&turn);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Comm* const comms[] = {&P, &I, &W, &S};
  for (int i = 0; i < 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, comms[i]);
  MPI_Send_init(data, 3, MPI_INT, other, 0, P, &persistent[0]);
  MPI_Recv_init(into, 8, MPI_INT, other, 0, P, &persistent[1]);
  together(3, (void* (*const[])(void*)){starter, completer, user});
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  MPI_Win_create(target, sizeof target, sizeof *target, MPI_INFO_NULL, W, &window);
  MPI_Win_lock_all(0, window);
  together(THREADS, (void* (*const[])(void*)){all_at_once, all_at_once, all_at_once, all_at_once});
  MPI_Win_unlock_all(window);
  together(THREADS, (void* (*const[])(void*)){groups, groups, groups, groups});
  MPI_Win_free(&window);
  for (int i = 0; i < 4; ++i) MPI_Comm_free(comms[i]);
  if (rank == 0) printf("threads done\n");
  MPI_Finalize();
  return 0;
}
