/* SPDX-License-Identifier: Apache-2.0
 *
 * An annotated application: heat spreads over a plane that a grid of ranks shares.  Rows and columns of the grid have a
 * communicator each; edges go to the neighbours in them, and the change of a step is added up along them.  A rank
 * sweeps its part in strips of some ten microseconds, each a region: about 100,000 regions a second with all others.
 *
 *   stencil ab PAIRS                               steps with and without annotation in turns, in blocks so short that
 *                                                  most are not interrupted: "ab|WITH|NS" is a step's time in the
 * fastest of each kind, "ab|ratio|R" the median over pairs of blocks stencil run EXECUTIONS SECONDS FLUSHES annotated;
 * EXECUTIONS of the outermost region, SECONDS each, with FLUSHES a commlens_flush() behind each: a line each,
 *                                                  "run|STEPS|WALL_NS|CPU_NS|FLUSH_NS" */
#define _GNU_SOURCE
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { ROWS = 1024, COLUMNS = 256, STRIP_NS = 12000, BLOCK_STEPS = 4 };

static double plane[2][ROWS + 2][COLUMNS + 2];
static MPI_Comm row_comm, column_comm;
static int left, right, up, down;
static int strip_rows = ROWS; /* until it is known how long a row takes */
static commlens_region_t strip_region;
static commlens_metric_t residual_metric;

/* The neighbours of this rank along a line of the grid: what a rank of its communicator of one dimension has. */
static MPI_Comm line_of(MPI_Comm grid, int dimension, int* before, int* behind) {
  int keep[2] = {dimension == 0, dimension == 1};
  MPI_Comm line;
  MPI_Cart_sub(grid, keep, &line);
  MPI_Cart_shift(line, 0, 1, before, behind);
  return line;
}

static void exchange(double (*now)[COLUMNS + 2], int annotated) {
  static double out[2][ROWS], in[2][ROWS];
  if (annotated) commlens_begin("exchange");
  if (annotated) commlens_begin("rows");
  for (int i = 0; i < ROWS; ++i) out[0][i] = now[i + 1][1], out[1][i] = now[i + 1][COLUMNS];
  MPI_Sendrecv(out[0], ROWS, MPI_DOUBLE, left, 0, in[1], ROWS, MPI_DOUBLE, right, 0, row_comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(out[1], ROWS, MPI_DOUBLE, right, 1, in[0], ROWS, MPI_DOUBLE, left, 1, row_comm, MPI_STATUS_IGNORE);
  if (left != MPI_PROC_NULL)
    for (int i = 0; i < ROWS; ++i) now[i + 1][0] = in[0][i];
  if (right != MPI_PROC_NULL)
    for (int i = 0; i < ROWS; ++i) now[i + 1][COLUMNS + 1] = in[1][i];
  if (annotated) commlens_end("rows");
  if (annotated) commlens_begin("columns");
  MPI_Sendrecv(&now[1][1], COLUMNS, MPI_DOUBLE, up, 2, &now[ROWS + 1][1], COLUMNS, MPI_DOUBLE, down, 2, column_comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&now[ROWS][1], COLUMNS, MPI_DOUBLE, down, 3, &now[0][1], COLUMNS, MPI_DOUBLE, up, 3, column_comm,
               MPI_STATUS_IGNORE);
  if (annotated) commlens_end("columns");
  if (annotated) commlens_end("exchange");
}

__attribute__((noinline)) static double sweep_strip(double (*now)[COLUMNS + 2], double (*next)[COLUMNS + 2], int from,
                                                    int to) {
  double change = 0;
  for (int i = from; i < to; ++i) {
    for (int j = 1; j <= COLUMNS; ++j) {
      const double value = 0.25 * (now[i - 1][j] + now[i + 1][j] + now[i][j - 1] + now[i][j + 1]);
      change += (value - now[i][j]) * (value - now[i][j]);
      next[i][j] = value;
    }
  }
  return change;
}

/* Returns how many regions it began. */
static long step(int annotated) {
  static int which = 0;
  double (*const now)[COLUMNS + 2] = plane[which], (*const next)[COLUMNS + 2] = plane[1 - which];
  long regions = 4;
  which = 1 - which;
  exchange(now, annotated);
  double change = 0, of_row, of_all;
  if (annotated) commlens_begin("sweep");
  for (int from = 1; from <= ROWS; from += strip_rows, ++regions) {
    const int to = from + strip_rows <= ROWS ? from + strip_rows : ROWS + 1;
    if (annotated) commlens_begin_region(strip_region);
    change += sweep_strip(now, next, from, to);
    if (annotated) commlens_end_region(strip_region);
  }
  if (annotated) commlens_end("sweep");
  if (annotated) commlens_begin("residual");
  MPI_Allreduce(&change, &of_row, 1, MPI_DOUBLE, MPI_SUM, row_comm);
  MPI_Allreduce(&of_row, &of_all, 1, MPI_DOUBLE, MPI_SUM, column_comm);
  if (annotated) commlens_record(residual_metric, of_all);
  if (annotated) commlens_end("residual");
  return regions + 1;
}

static long steps(int times, int annotated) {
  long regions = 0;
  if (annotated) commlens_loop_begin("time steps", COMMLENS_LOOP_SUM);
  for (int i = 0; i < times; ++i) {
    if (annotated) commlens_loop_iteration();
    regions += step(annotated);
  }
  if (annotated) commlens_loop_end("time steps");
  return regions;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void compare(int pairs, int rank) {
  double best[2] = {0, 0}, *const ratios = malloc((size_t)pairs * sizeof *ratios);
  long regions = 0;
  commlens_begin("main");
  for (int pair = 0; pair < pairs; ++pair) {
    double ns[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int annotated = (pair + turn) % 2; /* who comes first alternates */
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = now_ns();
      regions = steps(BLOCK_STEPS, annotated);
      ns[annotated] = (now_ns() - start) / BLOCK_STEPS;
      if (best[annotated] == 0 || ns[annotated] < best[annotated]) best[annotated] = ns[annotated];
    }
    ratios[pair] = ns[1] / ns[0];
  }
  commlens_end("main");
  if (rank == 0) {
    qsort(ratios, (size_t)pairs, sizeof *ratios, by_value);
    printf("ab|0|%.1f\nab|1|%.1f\nab|ratio|%.5f\n", best[0], best[1], ratios[pairs / 2]);
    printf("ab|regions a second|%.0f\n", (double)regions / BLOCK_STEPS * 1e9 / best[1]);
  }
  free(ratios);
}

static void run(int executions, double seconds, int flushes, int rank) {
  for (int execution = 0; execution < executions; ++execution) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns(), cpu_start = ns_of(CLOCK_PROCESS_CPUTIME_ID);
    long times = 0;
    commlens_begin("main");
    for (int goes_on = 1; goes_on; ++times) {
      steps(BLOCK_STEPS, 1);
      goes_on = now_ns() - start < 1e9 * seconds;
      MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    commlens_end("main");
    const double flush_start = now_ns();
    if (flushes && commlens_flush() != 0) fprintf(stderr, "stencil: nothing to flush\n");
    const double end = now_ns();
    if (rank != 0) continue;
    printf("run|%ld|%.0f|%.0f|%.0f\n", times * BLOCK_STEPS, end - start, ns_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start,
           end - flush_start);
  }
}

int main(int argc, char** argv) {
  int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0};
  MPI_Comm grid;
  MPI_Init(&argc, &argv);
  if (argc < 3) {
    fprintf(stderr, "usage: stencil ab PAIRS | stencil run EXECUTIONS SECONDS FLUSHES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pin(rank);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  column_comm = line_of(grid, 0, &up, &down);
  row_comm = line_of(grid, 1, &left, &right);
  strip_region = commlens_region("strip");
  residual_metric = commlens_metric("residual", "");
  for (int i = 0; i < ROWS + 2; ++i) plane[0][i][0] = plane[1][i][0] = 100;

  double per_step = 0; /* the fastest of some */
  for (int i = 0; i < 300; ++i) {
    const double start = now_ns();
    step(0);
    const double ns = now_ns() - start;
    if (i == 0 || ns < per_step) per_step = ns;
  }
  MPI_Allreduce(MPI_IN_PLACE, &per_step, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  strip_rows = (int)(STRIP_NS / (per_step / ROWS)) + 1;

  if (strcmp(argv[1], "ab") == 0) {
    compare(atoi(argv[2]), rank);
  } else if (argc > 4) {
    run(atoi(argv[2]), atof(argv[3]), atoi(argv[4]), rank);
  }
  MPI_Finalize();
  return 0;
}
