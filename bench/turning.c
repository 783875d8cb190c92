/* SPDX-License-Identifier: Apache-2.0
 * A stencil on a torus of 4 x N ranks whose flow turns half-way.  Two waves of NUMBERS doubles a rank move in opposite
 * directions along the flow, one rank a step; four halos of NUMBERS / 16 doubles go to the neighbours on the torus. The
 * flow is along the columns first, which are ranks r, r + 4, ..., and along the diagonals then.  After every EVERY
 * steps the program calls commlens_reorder() and moves its data; 0: never.  A wave in the wrong place shows.
 *
 *   turning NUMBERS STEPS EVERY
 *
 * Prints "step N SECONDS" for each step and "call N OUTCOME SECONDS MOVING" for each call after step N, both means over
 * the processes: the time of the call, and of moving the data.  bench/turning.F90 and bench/turning.py do the same. */
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { width = 4, most_steps = 1000, most_ranks = 64 };

static MPI_Comm comm;
static int rank, ranks, numbers;
static double *waves[2], *arriving[2], *halos[4], *border;
static int moved[2]; /* by how many columns and rows the first wave has moved; the second one: the other way */

static int rank_at(int x, int y) {
  const int height = ranks / width;
  return (y % height + height) % height * width + (x % width + width) % width;
}

static int neighbour(int right, int down) { return rank_at(rank % width + right, rank / width + down); }

static double number(int origin, int i) { return origin * 1000.0 + i % 1000; }

static void check(const double* values, int count, int origin, const char* what) {
  for (int i = 0; i < count; ++i) {
    if (values[i] == number(origin, i)) continue;
    fprintf(stderr, "turning: wrong %s on rank %d\n", what, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void step(int right, int down) {
  const int around[4] = {neighbour(1, 0), neighbour(-1, 0), neighbour(0, 1), neighbour(0, -1)};
  const int flow[2] = {neighbour(right, down), neighbour(-right, -down)};
  MPI_Request requests[12];
  for (int w = 0; w < 2; ++w) {
    MPI_Irecv(arriving[w], numbers, MPI_DOUBLE, flow[1 - w], w, comm, &requests[w]);
    MPI_Isend(waves[w], numbers, MPI_DOUBLE, flow[w], w, comm, &requests[2 + w]);
  }
  for (int i = 0; i < 4; ++i) {
    MPI_Irecv(halos[i], numbers / 16, MPI_DOUBLE, around[i], 2 + (i ^ 1), comm, &requests[4 + i]);
    MPI_Isend(border, numbers / 16, MPI_DOUBLE, around[i], 2 + i, comm, &requests[8 + i]);
  }
  MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
  moved[0] += right, moved[1] += down;
  for (int w = 0; w < 2; ++w) {
    double* const other = waves[w];
    waves[w] = arriving[w], arriving[w] = other;
    const int back = w == 0 ? -1 : 1;
    check(waves[w], numbers, neighbour(back * moved[0], back * moved[1]), "wave");
  }
  for (int i = 0; i < 4; ++i) check(halos[i], numbers / 16, around[i], "halo");
}

/* Each process gives the waves of its old rank to the process that has this rank now.  It asks for the source:
 * MPICH 5.0.2 hangs on hosts with networks when the source is MPI_ANY_SOURCE. */
static void move_to(MPI_Comm made) {
  const int old = rank;
  int before[most_ranks], source = 0;
  comm = made;
  MPI_Comm_rank(comm, &rank);
  MPI_Allgather(&old, 1, MPI_INT, before, 1, MPI_INT, comm);
  while (before[source] != rank) ++source;
  for (int w = 0; w < 2; ++w) {
    MPI_Sendrecv(waves[w], numbers, MPI_DOUBLE, old, w, arriving[w], numbers, MPI_DOUBLE, source, w, comm,
                 MPI_STATUS_IGNORE);
    double* const other = waves[w];
    waves[w] = arriving[w], arriving[w] = other;
  }
  for (int i = 0; i < numbers / 16; ++i) border[i] = number(rank, i);
}

/* Sets the outcome, and the seconds of the call and of the data. */
static void reorder(double said[3]) {
  MPI_Comm made, old = comm;
  const double begin = MPI_Wtime();
  const int outcome = commlens_reorder(&comm, &made);
  const double called = MPI_Wtime();
  if (outcome < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  if (outcome == 1) {
    commlens_pause();
    move_to(made);
    commlens_resume();
  }
  comm = made;
  MPI_Comm_free(&old);
  said[0] = outcome;
  said[1] = called - begin;
  said[2] = MPI_Wtime() - called;
}

static void* array(int count) {
  void* const made = calloc((size_t)count, sizeof(double));
  if (made == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

int main(int argc, char** argv) {
  static double seconds[most_steps], calls[most_steps][3], mean[most_steps], mean_calls[most_steps][3];
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int steps = argc == 4 ? atoi(argv[2]) : 0, every = argc == 4 ? atoi(argv[3]) : 0;
  numbers = argc == 4 ? atoi(argv[1]) : 0;
  if (numbers < 16 || steps < 2 || steps > most_steps || every < 0 || ranks % width != 0 || ranks > most_ranks) {
    fprintf(stderr, "usage: turning NUMBERS STEPS EVERY, on 4 x N ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int w = 0; w < 2; ++w) waves[w] = array(numbers), arriving[w] = array(numbers);
  for (int i = 0; i < 4; ++i) halos[i] = array(numbers / 16);
  border = array(numbers / 16);
  for (int i = 0; i < numbers; ++i) waves[0][i] = waves[1][i] = number(rank, i);
  for (int i = 0; i < numbers / 16; ++i) border[i] = number(rank, i);
  MPI_Barrier(comm);
  int called = 0;
  for (int s = 0; s < steps; ++s) {
    const double begin = MPI_Wtime();
    step(s < steps / 2 ? 0 : 1, 1);
    seconds[s] = MPI_Wtime() - begin;
    if (every > 0 && (s + 1) % every == 0 && s + 1 < steps) reorder(calls[called++]);
  }
  MPI_Reduce(seconds, mean, steps, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(calls, mean_calls, 3 * called, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  int first;
  MPI_Comm_rank(MPI_COMM_WORLD, &first);
  for (int s = 0; first == 0 && s < steps; ++s) printf("step %d %.6f\n", s + 1, mean[s] / ranks);
  for (int c = 0; first == 0 && c < called; ++c)
    printf("call %d %.0f %.6f %.6f\n", (c + 1) * every, mean_calls[c][0] / ranks, mean_calls[c][1] / ranks,
           mean_calls[c][2] / ranks);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
