/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of MPI operations over message size: prints "OPERATION|BYTES|NS" per line, from rank 0.  bench/matrix.py
 * runs it with and without matrices, in turns.  A line is the fastest of some blocks of calls, as in calls.c, of the
 * rank for which that took longest.
 *
 *   matrix [DIVISOR [messages]]
 *
 * DIVISOR: so many times fewer calls, for jobs with more ranks than processors.  With "messages" there are no one-sided
 * operations, which Open MPI 4.1 does not have over TCP. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { LARGEST = 1 << 20, BLOCKS = 7 };

static int rank, n;
static char *out, *in;
static MPI_Win win;

/* Ranks in pairs, one message each way. */
static void ping_pong(int bytes) {
  const int partner = rank ^ 1;
  if (partner >= n) return;
  if (rank % 2 == 0) {
    MPI_Send(out, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD);
  }
}

static void exchange(int bytes) {
  MPI_Request requests[4];
  const int right = (rank + 1) % n, left = (rank + n - 1) % n;
  MPI_Irecv(in, bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(in, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out, bytes, MPI_CHAR, right, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(out, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void bcast(int bytes) { MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void reduce(int bytes) { MPI_Reduce(out, in, bytes, MPI_CHAR, MPI_BOR, 0, MPI_COMM_WORLD); }
static void allreduce(int bytes) { MPI_Allreduce(out, in, bytes, MPI_CHAR, MPI_BOR, MPI_COMM_WORLD); }
static void allgather(int bytes) { MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }
static void alltoall(int bytes) { MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }
static void put(int bytes) {
  MPI_Put(out, bytes, MPI_CHAR, (rank + 1) % n, 0, bytes, MPI_CHAR, win);
  MPI_Win_flush((rank + 1) % n, win);
}

static const struct {
  const char* name;
  void (*call)(int);
} operations[] = {{"Send+Recv", ping_pong}, {"Isend+Irecv", exchange}, {"Bcast", bcast},       {"Reduce", reduce},
                  {"Allreduce", allreduce}, {"Allgather", allgather},  {"Alltoall", alltoall}, {"Put+flush", put}};

static double fastest(void (*call)(int), int bytes, int times) {
  double best = 1e300;
  for (int b = 0; b < BLOCKS; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_ns();
    for (int i = 0; i < times; ++i) call(bytes);
    double spent = (now_ns() - begin) / times;
    MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (spent < best) best = spent;
  }
  return best;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const int divisor = argc > 1 ? atoi(argv[1]) : 1;
  out = calloc((size_t)n, LARGEST);
  in = calloc((size_t)n, LARGEST);
  const int windows = argc <= 2;
  if (windows) {
    char* window;
    MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_lock_all(0, win);
  }
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    if (operations[i].call == put && !windows) continue;
    for (int bytes = 1; bytes <= LARGEST; bytes *= 32) {
      const int times = (bytes < 1 << 15 ? 400 : 40) / divisor;
      fastest(operations[i].call, bytes, times / 4);
      const double ns = fastest(operations[i].call, bytes, times);
      if (rank == 0) printf("%s|%d|%.1f\n", operations[i].name, bytes, ns);
    }
  }
  if (windows) {
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
