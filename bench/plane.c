/* SPDX-License-Identifier: Apache-2.0
 * STEPS of a five-point average of VARIABLES on a plane with CELLS × CELLS cells a rank.  The ranks are a grid without
 * wrapping, and each exchanges one message of CELLS × VARIABLES numbers with each of its neighbours in a step. Variable
 * v is x + v y, which a step leaves as it is.  So every cell is known, and wrong or missing halos show.
 *
 *   plane CELLS VARIABLES STEPS */
#include <math.h>

#include "apps/app.h"

static long cells, variables;
static int dims[2], place[2];

static size_t cell(long variable, long x, long y) { return (size_t)((variable * (cells + 2) + y) * (cells + 2) + x); }

static double expected(long variable, long x, long y) {
  return (double)(place[1] * cells + x) + (double)variable * (double)(place[0] * cells + y);
}

/* Copies an edge of all variables: side 0 and 1 are the first and the last row, 2 and 3 the columns. */
static void copy_edge(double* values, int side, int is_halo, double* edge, int is_packed) {
  const long line = side % 2 == 0 ? !is_halo : cells + is_halo;
  for (long v = 0; v < variables; ++v)
    for (long i = 1; i <= cells; ++i) {
      double* const inside = &values[side < 2 ? cell(v, i, line) : cell(v, line, i)];
      double* const outside = &edge[v * cells + i - 1];
      if (is_packed)
        *outside = *inside;
      else
        *inside = *outside;
    }
}

static void exchange(double* values, MPI_Comm grid, const int neighbour[4], double* const in[4], double* const out[4]) {
  const int count = (int)(cells * variables);
  MPI_Request requests[8];
  for (int side = 0; side < 4; ++side)
    MPI_Irecv(in[side], count, MPI_DOUBLE, neighbour[side], side, grid, &requests[side]);
  for (int side = 0; side < 4; ++side) {
    copy_edge(values, side, 0, out[side], 1);
    MPI_Isend(out[side], count, MPI_DOUBLE, neighbour[side], side ^ 1, grid, &requests[4 + side]);
  }
  MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < 4; ++side)
    if (neighbour[side] != MPI_PROC_NULL) copy_edge(values, side, 1, in[side], 0);
}

/* Returns the largest difference from the known value. */
static double average(const double* from, double* to) {
  const long line = cells + 2;
  double worst = 0;
  for (long v = 0; v < variables; ++v)
    for (long y = 1; y <= cells; ++y)
      for (long x = 1; x <= cells; ++x) {
        const double* const c = &from[cell(v, x, y)];
        const double value = (c[0] + c[-1] + c[1] + c[-line] + c[line]) / 5;
        to[cell(v, x, y)] = value;
        worst = fmax(worst, fabs(value - expected(v, x, y)));
      }
  return worst;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "plane CELLS VARIABLES STEPS");
  cells = arguments[0], variables = arguments[1];
  if (cells * variables > 1 << 24) app_refuse("needs smaller halos");
  const int periodic[2] = {0, 0};
  MPI_Comm grid;
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &grid);
  MPI_Cart_coords(grid, rank, 2, place);
  int neighbour[4];
  MPI_Cart_shift(grid, 0, 1, &neighbour[0], &neighbour[1]);
  MPI_Cart_shift(grid, 1, 1, &neighbour[2], &neighbour[3]);
  double *in[4], *out[4];
  for (int side = 0; side < 4; ++side) {
    in[side] = app_array((size_t)(cells * variables), sizeof(double));
    out[side] = app_array((size_t)(cells * variables), sizeof(double));
  }
  const size_t size = (size_t)(variables * (cells + 2) * (cells + 2));
  double *now = app_array(size, sizeof *now), *next = app_array(size, sizeof *next);
  /* The border of the plane keeps its values; halos between ranks are wrong until they arrive. */
  for (long v = 0; v < variables; ++v)
    for (long y = 0; y <= cells + 1; ++y)
      for (long x = 0; x <= cells + 1; ++x) {
        const int is_border = (y == 0 && neighbour[0] == MPI_PROC_NULL) || (x == 0 && neighbour[2] == MPI_PROC_NULL) ||
                              (y == cells + 1 && neighbour[1] == MPI_PROC_NULL) ||
                              (x == cells + 1 && neighbour[3] == MPI_PROC_NULL);
        const int is_own = x >= 1 && x <= cells && y >= 1 && y <= cells;
        now[cell(v, x, y)] = next[cell(v, x, y)] = is_own || is_border ? expected(v, x, y) : NAN;
      }
  double all = 0;
  for (long step = 0; step < arguments[2]; ++step) {
    exchange(now, grid, neighbour, in, out);
    const double mine = average(now, next);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
    app_check(mine <= 1e-9 * (double)(variables * (cells * ranks)));
    double* const other = now;
    now = next, next = other;
  }
  free(now), free(next);
  for (int side = 0; side < 4; ++side) free(in[side]), free(out[side]);
  MPI_Comm_free(&grid);
  return app_end((double)arguments[2]);
}
