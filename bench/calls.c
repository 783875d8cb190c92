/* SPDX-License-Identifier: Apache-2.0
 *
 * What one MPI call costs, in nanoseconds: prints "ROW|COMMUNICATORS|NS" per line.  bench/run.py starts it without and
 * with commlens, in turns, and compares.  Knows nothing of commlens.
 *
 * How many communicators a row goes round are its arguments, 1 and 64 without any; what a look at the clock of the
 * processor takes comes first, with 0 of them.
 *
 * A row is timed in BLOCKS blocks, or in as many as the environment's CALLS_BLOCKS says; what is printed is the
 * fastest, the one least disturbed by whatever else this machine does.  With one process the rows are calls to oneself,
 * with two the one collective between both. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "clock.h"

enum { MOST = 4096, BLOCKS = 9 };

static MPI_Comm comms[MOST];
static double in, out;

typedef void operation(MPI_Comm comm);

static void allreduce(MPI_Comm comm) { MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm); }

static void triple(MPI_Comm comm) {
  MPI_Request requests[2];
  MPI_Irecv(&out, 1, MPI_DOUBLE, 0, 1, comm, &requests[0]);
  MPI_Isend(&in, 1, MPI_DOUBLE, 0, 1, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void iprobe(MPI_Comm comm) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 2, comm, &flag, MPI_STATUS_IGNORE);
}

static void send_to_nobody(MPI_Comm comm) { MPI_Send(&in, 1, MPI_DOUBLE, MPI_PROC_NULL, 3, comm); }

static unsigned long long ticks;

static void look_at_clock(MPI_Comm comm) {
  (void)comm;
  ticks += __rdtsc();
}

struct row {
  const char* name;
  operation* op;
  long calls; /* in a block: some milliseconds, so that reading the clock does not matter */
};

static double best_block(const struct row* row, int n_comms) {
  const char* const chosen = getenv("CALLS_BLOCKS");
  const int blocks = chosen != NULL ? atoi(chosen) : BLOCKS;
  double best = 0;
  if (n_comms == 0) n_comms = 1;
  for (int block = 0; block <= blocks; ++block) { /* the first one warms up */
    const double start = now_ns();
    for (long i = 0, at = 0; i < row->calls; ++i) {
      row->op(comms[at]);
      if (++at == n_comms) at = 0; /* a division would take as long as what is measured */
    }
    const double ns = (now_ns() - start) / (double)row->calls;
    if (block == 1 || (block > 1 && ns < best)) best = ns;
  }
  return best;
}

static int sizes[8] = {1, 64}, n_sizes = 2;

static void measure(int rank, int size) {
  static const struct row alone[] = {
      {"Allreduce 8 B, self", allreduce, 100000},
      {"Irecv+Isend+Waitall 8 B, self", triple, 40000},
      {"Iprobe, self", iprobe, 100000},
      {"Send 8 B to MPI_PROC_NULL", send_to_nobody, 400000},
  };
  static const struct row look = {"rdtsc", look_at_clock, 1000000};
  static const struct row both[] = {{"Allreduce 8 B, 2 processes", allreduce, 4000}};
  if (rank == 0) printf("%s|0|%.2f\n", look.name, best_block(&look, 0));
  const struct row* rows = size == 1 ? alone : both;
  const size_t n_rows = size == 1 ? sizeof alone / sizeof *alone : sizeof both / sizeof *both;
  for (size_t i = 0; i < n_rows; ++i) {
    for (int k = 0; k < n_sizes; ++k) {
      const double ns = best_block(&rows[i], sizes[k]);
      if (rank == 0) printf("%s|%d|%.2f\n", rows[i].name, sizes[k], ns);
    }
  }
}

/* Measures under so many frames that a call path is as long as a profiler wants it. */
static __attribute__((noinline)) void measure_under(int frames, int rank, int size) {
  if (frames == 0) {
    measure(rank, size);
  } else {
    measure_under(frames - 1, rank, size);
  }
  __asm__ volatile(""); /* no jump */
}

int main(int argc, char** argv) {
  int rank, size, most = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pin(rank);
  if (argc > 1) n_sizes = 0;
  for (int i = 1; i < argc && n_sizes < 8; ++i) sizes[n_sizes++] = atoi(argv[i]);
  for (int i = 0; i < n_sizes; ++i) {
    if (sizes[i] < 1 || sizes[i] > MOST) MPI_Abort(MPI_COMM_WORLD, 1);
    if (sizes[i] > most) most = sizes[i];
  }
  for (int i = 0; i < most; ++i) MPI_Comm_dup(size == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD, &comms[i]);
  measure_under(16, rank, size);
  if (ticks == 1) printf("\n"); /* else the compiler leaves out what nobody reads */
  MPI_Finalize();
  return 0;
}
