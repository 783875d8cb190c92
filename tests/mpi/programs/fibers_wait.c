/* SPDX-License-Identifier: Apache-2.0
 * While a fiber waits in MPI_Wait, another one of the same thread completes many requests. Needs yielding_tool.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { WAITS = 400, FIRST_SWITCH = 200, MANY = 200, STACK = 1024 * 1024 };
static ucontext_t home, waits, completes;
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
  *hook = yield;
  char* const stacks = malloc(2 * (size_t)STACK);
  make(&waits, stacks, wait_often);
  make(&completes, stacks + STACK, complete_many);
  swapcontext(&home, &waits);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  free(stacks);
  puts("fibers done");
  return 0;
}
