/* SPDX-License-Identifier: Apache-2.0
 * SWEEPS through a box and back, as LU solvers do.  The ranks are a grid; each has CELLS × CELLS columns of PLANES
 * cells. A cell is made of the three before it, so a rank waits in each plane for the edges of two others, and hands on
 * its own.  The equation has a solution that is a plane, higher with each sweep: an edge of another sweep or rank
 * shows. */
#include <math.h>

#include "app.h"

static long cells, planes;
static int rows, columns, row, column;
static double *values, *edge;

static double* value(long x, long y, long z) { return &values[(z * (cells + 2) + y) * (cells + 2) + x]; }

/* By the cell of the rank, from 1 on; 0 and those behind the last are others'. */
static double exact(long x, long y, long z, long height) {
  return (double)(column * cells + x) + 2.0 * (double)(row * cells + y) + 3.0 * (double)z + (double)height;
}

static int rank_at(int r, int c) {
  return r < 0 || c < 0 || r >= rows || c >= columns ? MPI_PROC_NULL : r * columns + c;
}

/* Upwards with step 1, downwards with -1. */
static void sweep(int step, long height) {
  const long begin = step > 0 ? 1 : cells, end = cells + 1 - begin, first = step > 0 ? 1 : planes;
  const int west = rank_at(row, column - step), east = rank_at(row, column + step);
  const int north = rank_at(row - step, column), south = rank_at(row + step, column);
  for (long y = 1; y <= cells; ++y)
    for (long x = 1; x <= cells; ++x) *value(x, y, first - step) = exact(x, y, first - step, height);
  for (long n = 0, z = first; n < planes; ++n, z += step) {
    for (long i = 1; i <= cells; ++i) {
      edge[i - 1] = exact(begin - step, i, z, height);
      *value(i, begin - step, z) = exact(i, begin - step, z, height);
    }
    MPI_Recv(edge, (int)cells, MPI_DOUBLE, west, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(value(1, begin - step, z), (int)cells, MPI_DOUBLE, north, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (long i = 1; i <= cells; ++i) *value(begin - step, i, z) = edge[i - 1];
    for (long j = 0, y = begin; j < cells; ++j, y += step)
      for (long i = 0, x = begin; i < cells; ++i, x += step)
        *value(x, y, z) = (*value(x - step, y, z) + *value(x, y - step, z) + *value(x, y, z - step) + 6 * step) / 3;
    MPI_Send(value(1, end, z), (int)cells, MPI_DOUBLE, south, 1, MPI_COMM_WORLD);
    for (long i = 1; i <= cells; ++i) edge[i - 1] = *value(end, i, z);
    MPI_Send(edge, (int)cells, MPI_DOUBLE, east, 0, MPI_COMM_WORLD);
  }
}

static void check(long height) {
  for (long z = 1; z <= planes; ++z)
    for (long y = 1; y <= cells; ++y)
      for (long x = 1; x <= cells; ++x) {
        const double expected = exact(x, y, z, height);
        app_check(fabs(*value(x, y, z) - expected) <= 1e-12 * expected);
      }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "wavefront CELLS PLANES SWEEPS");
  const long sweeps = arguments[2];
  cells = arguments[0], planes = arguments[1];
  rows = app_rows(), columns = ranks / rows;
  row = rank / columns, column = rank % columns;
  values = app_array((size_t)(cells + 2) * (size_t)(cells + 2), (size_t)(planes + 2) * sizeof *values);
  edge = app_array((size_t)cells, sizeof *edge);
  for (long i = 0; i < sweeps; ++i) {
    sweep(1, 2 * i);
    check(2 * i);
    sweep(-1, 2 * i + 1);
    check(2 * i + 1);
  }
  const double corner = *value(1, 1, 1);
  free(values), free(edge);
  return app_end(corner);
}
