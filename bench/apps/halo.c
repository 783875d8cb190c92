/* SPDX-License-Identifier: Apache-2.0
 * STEPS of a seven-point average of VARIABLES on a periodic grid with CELLS × CELLS × CELLS cells a rank; each variable
 * has messages for six faces of its own, and a sum over all ranks.  A variable is 1 and a wave: a step makes the wave
 * smaller by a factor that is known, and leaves the sum as it is. */
#include <math.h>

#include "app.h"

static long cells, stride[3];
static int dims[3], place[3], neighbour[3][2];
static double wave[3]; /* the angle from a cell to the next */
static MPI_Comm grid;
static double *now, *next, *in[3][2], *out[3][2];

static size_t cell(long x, long y, long z) { return (size_t)(x * stride[0] + y * stride[1] + z * stride[2]); }

static double start_value(int variable, long x, long y, long z) {
  const long at[3] = {x, y, z};
  double angle = variable;
  for (int axis = 0; axis < 3; ++axis) angle += wave[axis] * (double)(place[axis] * cells + at[axis] - 1);
  return 1 + cos(angle);
}

/* Copies a layer of cells across an axis. */
static void pack(const double* values, int axis, long layer, double* face) {
  const long u = stride[(axis + 1) % 3], v = stride[(axis + 2) % 3];
  for (long i = 1; i <= cells; ++i)
    for (long j = 1; j <= cells; ++j) *face++ = values[layer * stride[axis] + i * u + j * v];
}
static void unpack(double* values, int axis, long layer, const double* face) {
  const long u = stride[(axis + 1) % 3], v = stride[(axis + 2) % 3];
  for (long i = 1; i <= cells; ++i)
    for (long j = 1; j <= cells; ++j) values[layer * stride[axis] + i * u + j * v] = *face++;
}

static void exchange(double* values) {
  const int count = (int)(cells * cells);
  MPI_Request requests[12];
  int n = 0;
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side)
      MPI_Irecv(in[axis][side], count, MPI_DOUBLE, neighbour[axis][side], 2 * axis + side, grid, &requests[n++]);
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side) {
      pack(values, axis, side == 0 ? 1 : cells, out[axis][side]);
      MPI_Isend(out[axis][side], count, MPI_DOUBLE, neighbour[axis][side], 2 * axis + 1 - side, grid, &requests[n++]);
    }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side) unpack(values, axis, side == 0 ? 0 : cells + 1, in[axis][side]);
}

/* Returns the sum of this rank's new values. */
static double average(const double* from, double* to) {
  double sum = 0;
  for (long z = 1; z <= cells; ++z)
    for (long y = 1; y <= cells; ++y)
      for (long x = 1; x <= cells; ++x) {
        const double* c = &from[cell(x, y, z)];
        const double value =
            (c[0] + c[-1] + c[1] + c[-stride[1]] + c[stride[1]] + c[-stride[2]] + c[stride[2]]) * (1.0 / 7);
        to[cell(x, y, z)] = value;
        sum += value;
      }
  return sum;
}

static void check(int variable, const double* values, double amplitude, double tolerance) {
  for (long z = 1; z <= cells; ++z)
    for (long y = 1; y <= cells; ++y)
      for (long x = 1; x <= cells; ++x) {
        const double expected = 1 + amplitude * (start_value(variable, x, y, z) - 1);
        app_check(fabs(values[cell(x, y, z)] - expected) <= tolerance);
      }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "halo CELLS VARIABLES STEPS");
  const long variables = arguments[1], steps = arguments[2];
  cells = arguments[0];
  if (cells < 2 || cells > 1000) app_refuse("needs CELLS from 2 to 1000");
  const int periodic[3] = {1, 1, 1};
  MPI_Dims_create(ranks, 3, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periodic, 0, &grid);
  MPI_Cart_coords(grid, rank, 3, place);
  double all_cells = (double)ranks, factor = 1; /* of the wave in a step, times 7 */
  for (int axis = 0; axis < 3; ++axis) {
    stride[axis] = axis == 0 ? 1 : stride[axis - 1] * (cells + 2);
    MPI_Cart_shift(grid, axis, 1, &neighbour[axis][0], &neighbour[axis][1]);
    /* One wave along x, two along y, three along z, so that mistaking an axis for another shows. */
    wave[axis] = 2 * acos(-1) * (axis + 1) / (double)(dims[axis] * cells);
    factor += 2 * cos(wave[axis]);
    all_cells *= (double)cells;
    for (int side = 0; side < 2; ++side) {
      in[axis][side] = app_array((size_t)(cells * cells), sizeof(double));
      out[axis][side] = app_array((size_t)(cells * cells), sizeof(double));
    }
  }
  const size_t size = (size_t)(stride[2] * (cells + 2));
  now = app_array((size_t)variables * size, sizeof *now);
  next = app_array((size_t)variables * size, sizeof *next);
  for (int v = 0; v < variables; ++v)
    for (long z = 1; z <= cells; ++z)
      for (long y = 1; y <= cells; ++y)
        for (long x = 1; x <= cells; ++x) now[(size_t)v * size + cell(x, y, z)] = start_value(v, x, y, z);

  double sum = 0;
  for (long step = 0; step < steps; ++step) {
    for (int v = 0; v < variables; ++v) {
      exchange(&now[(size_t)v * size]);
      const double mine = average(&now[(size_t)v * size], &next[(size_t)v * size]);
      MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, grid);
      app_check(fabs(sum - all_cells) <= 1e-10 * all_cells);
    }
    double* const other = now;
    now = next, next = other;
  }
  for (int v = 0; v < variables; ++v)
    check(v, &now[(size_t)v * size], pow(factor / 7, (double)steps), 1e-14 * (double)(steps + 10));
  free(now), free(next);
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side) free(in[axis][side]), free(out[axis][side]);
  MPI_Comm_free(&grid);
  return app_end(sum);
}
