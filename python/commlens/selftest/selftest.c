// SPDX-License-Identifier: Apache-2.0
// Makes calls whose counts known.py computes, and checks their results itself.  Runs with and without commlens.
//
//   selftest [killed]
//
// Process 0 prints one line at the end. With "killed" the last process kills itself after the ring.
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MESSAGES = 20,
  MESSAGE = 1000,
  SUMS = 30,
  BROADCASTS = 25,
  NUMBERS = 256,
  DUPLICATES = 10,
  GATHERS = 5,
  LATER_SUMS = 7
};

static int me, all;
static long wrong;
static long long total;

static void expect(long long found, long long known) {
  total += found;
  wrong += found != known;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Sends around the ring of all processes.
static void ring(void) {
  static char sent[MESSAGE], received[MESSAGE];
  int to = (me + 1) % all, from = (me + all - 1) % all;
  memset(sent, 'a' + me % 26, sizeof sent);
  for (int i = 0; i < MESSAGES; ++i) {
    MPI_Request request;
    MPI_Isend(sent, MESSAGE, MPI_BYTE, to, i, MPI_COMM_WORLD, &request);
    MPI_Recv(received, MESSAGE, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(received[MESSAGE - 1], 'a' + from % 26);
  }
}

static void sums(void) {
  for (int i = 0; i < SUMS; ++i) {
    int mine = i, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum, (long long)i * all);
  }
  for (int i = 0; i < LATER_SUMS; ++i) {
    double mine = 1, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect((long long)sum, all);
  }
}

// Broadcasts among the processes of even rank, and among the others.
static void parts(void) {
  static double numbers[NUMBERS];
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &part);
  MPI_Comm_set_name(part, "self-test part");
  for (int i = 0; i < BROADCASTS; ++i) {
    numbers[NUMBERS - 1] = me < 2 ? i : -1;
    MPI_Bcast(numbers, NUMBERS, MPI_DOUBLE, 0, part);
    expect((long long)numbers[NUMBERS - 1], i);
  }
  MPI_Comm_free(&part);
}

static void duplicates(void) {
  for (int i = 0; i < DUPLICATES; ++i) {
    MPI_Comm duplicate;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Barrier(duplicate);
    MPI_Comm_free(&duplicate);
  }
}

// Collects three numbers of each process at the last one.
static void gathers(void) {
  int mine[3] = {me, me, me}, *got = calloc((size_t)all, sizeof mine);
  for (int i = 0; got != NULL && i < GATHERS; ++i) {
    MPI_Gather(mine, 3, MPI_INT, got, 3, MPI_INT, all - 1, MPI_COMM_WORLD);
    if (me == all - 1) expect(got[3 * all - 1], all - 1);
  }
  free(got);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double begin = now();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  void (*begin_region)(const char*), (*end_region)(const char*);
  *(void**)&begin_region = dlsym(RTLD_DEFAULT, "commlens_begin");
  *(void**)&end_region = dlsym(RTLD_DEFAULT, "commlens_end");
  if (begin_region != NULL) begin_region("ring");
  ring();
  if (end_region != NULL) end_region("ring");
  if (argc > 1 && strcmp(argv[1], "killed") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == all - 1) raise(SIGKILL);
  }
  sums();
  parts();
  duplicates();
  gathers();
  long long mine[2] = {wrong, total}, sum[2];
  double seconds = now() - begin;
  MPI_Reduce(mine, sum, 2, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (me == 0)
    printf("self-test: %d processes, %lld wrong results, sum %lld, %.9f seconds\n", all, sum[0], sum[1], seconds);
  MPI_Finalize();
  return 0;
}
