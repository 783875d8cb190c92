/* SPDX-License-Identifier: Apache-2.0
 * MPI on other stacks than the usual one, 2 ranks: all of it in a thread that is not the first one; calls from fibers,
 * which take turns within one thread; calls from threads with little stack. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { TURNS = 50, FIBER_STACK = 256 * 1024, SMALL_STACK = 64 * 1024, SMALL_THREADS = 3 };
static int arguments;
static char** vector;
static ucontext_t home, fibers[2];
static MPI_Comm comms[3];

static void reduce(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

static void fiber(int number) {
  for (int i = 0; i < TURNS; ++i) {
    reduce(comms[number]);
    swapcontext(&fibers[number], number == 0 ? &fibers[1] : &home);
  }
}

static void* small(void* unused) {
  for (int i = 0; i < TURNS; ++i) {
    int out = i, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (in != i) abort();
  }
  return unused;
}

/* A fiber that another thread goes on with after each call. */
enum { MOVES = 10 };
static ucontext_t wanderer, of_thread;

static void wander(void) {
  for (int i = 0; i < MOVES; ++i) {
    reduce(MPI_COMM_WORLD);
    swapcontext(&wanderer, &of_thread);
  }
}

static void* goes_on(void* unused) {
  swapcontext(&of_thread, &wanderer);
  return unused;
}

static void* all_of_it(void* unused) {
  int provided, rank;
  MPI_Init_thread(&arguments, &vector, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 2; ++i) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = malloc(FIBER_STACK);
    fibers[i].uc_stack.ss_size = FIBER_STACK;
    fibers[i].uc_link = &home;
    makecontext(&fibers[i], (void (*)(void))fiber, 1, i);
  }
  for (int i = 0; i < TURNS; ++i) {
    swapcontext(&home, &fibers[0]);
    reduce(comms[2]);
  }
  pthread_attr_t little;
  pthread_attr_init(&little);
  pthread_attr_setstacksize(&little, SMALL_STACK);
  for (int i = 0; i < SMALL_THREADS; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &little, small, NULL) != 0) abort();
    pthread_join(thread, NULL);
  }
  getcontext(&wanderer);
  wanderer.uc_stack.ss_sp = malloc(FIBER_STACK);
  wanderer.uc_stack.ss_size = FIBER_STACK;
  wanderer.uc_link = &of_thread;
  makecontext(&wanderer, wander, 0);
  for (int i = 0; i < MOVES; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes_on, NULL) != 0) abort();
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&comms[i]);
  if (rank == 0) puts("stacks done");
  MPI_Finalize();
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  arguments = argc;
  vector = argv;
  pthread_create(&thread, NULL, all_of_it, NULL);
  pthread_join(thread, NULL);
  return 0;
}
