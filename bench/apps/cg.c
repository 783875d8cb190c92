/* SPDX-License-Identifier: Apache-2.0
 * ITERATIONS of conjugate gradients for the Laplacian of a cube with POINTS points along an edge, a sparse matrix with
 * seven entries a row; each rank has some of its planes.  The right-hand side is made of a known solution, so that the
 * error is known, and theory says how small it must be by now. */
#include <math.h>

#include "app.h"

static long points, first, planes; /* along an edge; of this rank, in z */
static size_t area, rows;

/* The matrix by rows (CSR).  Columns count from the plane before this rank's first one, as vectors do. */
static int *row_start, *column;
static double* entry;

/* A vector has its neighbours' planes in front and behind; at the faces of the cube they stay zero. */
static double* new_vector(void) { return app_array(rows + 2 * area, sizeof(double)); }

static double solution(long x, long y, long z) {
  if (x < 0 || y < 0 || z < 0 || x >= points || y >= points || z >= points) return 0;
  return (double)app_noise((uint64_t)((z * points + y) * points + x)) / (double)UINT64_MAX;
}

static void assemble(double* exact, double* right_side) {
  row_start = app_array(rows + 1, sizeof *row_start);
  column = app_array(7 * rows, sizeof *column);
  entry = app_array(7 * rows, sizeof *entry);
  const long steps[7][3] = {{0, 0, -1}, {0, -1, 0}, {-1, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  int used = 0;
  size_t row = 0;
  for (long z = first; z < first + planes; ++z)
    for (long y = 0; y < points; ++y)
      for (long x = 0; x < points; ++x, ++row) {
        const long own = (long)(row + area);
        exact[own] = solution(x, y, z);
        for (int i = 0; i < 7; ++i) {
          const long nx = x + steps[i][0], ny = y + steps[i][1], nz = z + steps[i][2];
          if (nx < 0 || ny < 0 || nz < 0 || nx >= points || ny >= points || nz >= points) continue;
          entry[used] = i == 3 ? 6 : -1;
          column[used++] = (int)(own + ((nz - z) * points + ny - y) * points + nx - x);
          right_side[own] += (i == 3 ? 6 : -1) * solution(nx, ny, nz);
        }
        row_start[row + 1] = used;
      }
}

static void multiply(double* x, double* product) {
  const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Request requests[4];
  MPI_Irecv(x, (int)area, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(x + area + rows, (int)area, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(x + area, (int)area, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(x + rows, (int)area, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int i = row_start[row]; i < row_start[row + 1]; ++i) sum += entry[i] * x[column[i]];
    product[area + row] = sum;
  }
}

static double dot(const double* a, const double* b) {
  double mine = 0, sum;
  for (size_t i = area; i < area + rows; ++i) mine += a[i] * b[i];
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

/* What conjugate gradients make smaller in every step. */
static double energy_norm(double* error, double* scratch) {
  multiply(error, scratch);
  return sqrt(dot(error, scratch));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "cg POINTS ITERATIONS");
  const long iterations = arguments[1];
  points = arguments[0];
  if (points < ranks || points > 600) app_refuse("needs at least as many POINTS as ranks, and at most 600");
  first = points * rank / ranks;
  planes = points * (rank + 1) / ranks - first;
  area = (size_t)(points * points);
  rows = area * (size_t)planes;

  double *const exact = new_vector(), *const residual = new_vector(), *const x = new_vector();
  double *const direction = new_vector(), *const image = new_vector();
  assemble(exact, residual);
  const double error_before = energy_norm(exact, image);
  for (size_t i = area; i < area + rows; ++i) direction[i] = residual[i];
  double square = dot(residual, residual);
  for (long iteration = 0; iteration < iterations; ++iteration) {
    multiply(direction, image);
    const double curvature = dot(direction, image), step = curvature > 0 ? square / curvature : 0;
    for (size_t i = area; i < area + rows; ++i) x[i] += step * direction[i], residual[i] -= step * image[i];
    const double before = square, turn = (square = dot(residual, residual)) / (before > 0 ? before : 1);
    for (size_t i = area; i < area + rows; ++i) direction[i] = residual[i] + turn * direction[i];
  }

  /* The residual is what the matrix makes of the error: once by the iteration, once by multiplying. */
  for (size_t i = 0; i < area + rows; ++i) direction[i] = exact[i] - x[i];
  const double error = energy_norm(direction, image);
  for (size_t i = area; i < area + rows; ++i) image[i] -= residual[i];
  app_check(sqrt(dot(image, image)) <= 1e-12 * (double)points * error_before);
  /* The eigenvalues are 6 - 2 (cos a + cos b + cos c), with a, b, c from pi / (points + 1) to its `points`-fold. */
  const double largest_cos = cos(acos(-1) / (double)(points + 1));
  const double root = sqrt((1 + largest_cos) / (1 - largest_cos));
  const double bound = 2 * pow((root - 1) / (root + 1), (double)iterations) * error_before;
  app_check(error <= bound + 1e-12 * error_before);
  free(exact), free(residual), free(x), free(direction), free(image);
  free(row_start), free(column), free(entry);
  return app_end(error_before);
}
