/* SPDX-License-Identifier: Apache-2.0
 * While a fiber waits, another one of the same thread completes requests, too. Needs yielding_tool.c.
 *   fibers_wait once     in one of many MPI_Wait, one large MPI_Waitall that ends before it
 *   fibers_wait always   each MPI_Wait or MPI_Waitall of two fibers begins and ends inside one of the other */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WAITS = 400, FIRST_SWITCH = 200, MANY = 200, STACK = 1024 * 1024 };
static ucontext_t home, waits, completes, fibers[2];
static MPI_Comm comm;
static int waited;

static void yield(void) {
  if (waited++ == FIRST_SWITCH) swapcontext(&waits, &completes);
}

static void complete_many(void) {
  static int in[MANY];
  int out = 1;
  MPI_Request requests[MANY];
  for (int i = 0; i < MANY; ++i) MPI_Irecv(&in[i], 1, MPI_INT, 0, 5, comm, &requests[i]);
  for (int i = 0; i < MANY; ++i) MPI_Send(&out, 1, MPI_INT, 0, 5, comm);
  MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
  swapcontext(&completes, &waits);
}

static void wait_often(void) {
  double in, out = 1;
  MPI_Request request;
  for (int i = 0; i < WAITS; ++i) {
    MPI_Irecv(&in, 1, MPI_DOUBLE, 0, 1, comm, &request);
    MPI_Send(&out, 1, MPI_DOUBLE, 0, 1, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  swapcontext(&waits, &home);
}

/* Of the fibers that take turns. */
enum { TURNS = 300 };
static int current, has_ended[2];

static void pass_the_turn(void) {
  const int own = current;
  if (has_ended[1 - own]) return;
  current = 1 - own;
  swapcontext(&fibers[own], &fibers[1 - own]);
}

static void complete(int fiber, int n, MPI_Datatype type, size_t bytes) {
  char in[2000], out[2000];
  MPI_Request requests[MANY];
  memset(in, 0, sizeof in);
  for (size_t i = 0; i < sizeof out; ++i) out[i] = (char)(i * 7 + (size_t)n);
  for (int i = 0; i < n; ++i) MPI_Irecv(in + (size_t)i * bytes, 1, type, 0, fiber, comm, &requests[i]);
  for (int i = 0; i < n; ++i) MPI_Send(out + (size_t)i * bytes, 1, type, 0, fiber, comm);
  if (n == 1) {
    MPI_Wait(requests, MPI_STATUS_IGNORE);
  } else {
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  }
  if (memcmp(in, out, (size_t)n * bytes) != 0) printf("fiber %d received something else\n", fiber);
}

static void take_turns(int fiber) {
  static const int doubles[] = {1, 3, 50}, ints[] = {3, 90, 7, MANY};
  for (int i = 0; i < TURNS; ++i) {
    if (fiber == 0) complete(fiber, doubles[i % 3], MPI_DOUBLE, sizeof(double));
    if (fiber == 1) complete(fiber, ints[i % 4], MPI_INT, sizeof(int));
  }
  has_ended[fiber] = 1;
  pass_the_turn();
  swapcontext(&fibers[fiber], &home);
}
static void take_turns_0(void) { take_turns(0); }
static void take_turns_1(void) { take_turns(1); }

static void make(ucontext_t* fiber, char* stack, void (*run)(void)) {
  getcontext(fiber);
  fiber->uc_stack.ss_sp = stack;
  fiber->uc_stack.ss_size = STACK;
  makecontext(fiber, run, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  void (**hook)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "before_wait");
  if (hook == 0) return 1;
  char* const stacks = malloc(2 * (size_t)STACK);
  if (argc > 1 && strcmp(argv[1], "always") == 0) {
    *hook = pass_the_turn;
    make(&fibers[0], stacks, take_turns_0);
    make(&fibers[1], stacks + STACK, take_turns_1);
    swapcontext(&home, &fibers[0]);
  } else {
    *hook = yield;
    make(&waits, stacks, wait_often);
    make(&completes, stacks + STACK, complete_many);
    swapcontext(&home, &waits);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  free(stacks);
  puts("fibers done");
  return 0;
}
