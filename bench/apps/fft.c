/* SPDX-License-Identifier: Apache-2.0
 * REPEATS times the Fourier transform of a cube with POINTS points along an edge, and its inverse.  The ranks are a
 * grid; each has pencils, whole along one axis, and two all-to-alls, along a row and along a column, turn them.  The
 * transform of a plane wave is one point, which is checked as well as that the inverse gives the wave again. */
#include <complex.h>
#include <math.h>

#include "app.h"

typedef double complex Number;

/* Before each turn a rank has its block of axis[0] and of axis[1], and all of axis[2], the fastest. */
static int points, axis[3] = {1, 2, 0};
static int parts[2], part[2]; /* of axis[0] and axis[1] */
static MPI_Comm line[2];      /* those who have the other blocks */
static size_t volume;
static Number *data, *packed, *roots; /* roots[i] = exp(-2 pi i / points), and all of it */

/* In place, radix 2; without the factor 1 / points. */
static void transform(Number* v, int inverse) {
  for (int i = 1, j = 0; i < points; ++i) {
    int bit = points / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) {
      const Number other = v[i];
      v[i] = v[j], v[j] = other;
    }
  }
  for (int half = 1; half < points; half *= 2)
    for (int start = 0; start < points; start += 2 * half)
      for (int i = 0; i < half; ++i) {
        const Number root = roots[points / (2 * half) * i];
        const Number odd = (inverse ? conj(root) : root) * v[start + half + i], even = v[start + i];
        v[start + i] = even + odd, v[start + half + i] = even - odd;
      }
}

static void transform_pencils(int inverse) {
  for (size_t at = 0; at < volume; at += (size_t)points) transform(&data[at], inverse);
}

/* From axes (a, b, C), C whole, to (b, c, A): in the line of those who share b. */
static void turn(void) {
  const int n = points / parts[0], m = points / parts[1], block = n * m * n;
  Number* to = packed;
  for (int whole = 0; whole < points; ++whole) /* c, member of the line by member */
    for (int b = 0; b < m; ++b)
      for (int a = 0; a < n; ++a) *to++ = data[((size_t)a * m + b) * points + whole];
  MPI_Alltoall(packed, block, MPI_C_DOUBLE_COMPLEX, data, block, MPI_C_DOUBLE_COMPLEX, line[0]);
  const Number* from = data;
  for (int member = 0; member < parts[0]; ++member)
    for (int c = 0; c < n; ++c)
      for (int b = 0; b < m; ++b, from += n)
        for (int a = 0; a < n; ++a) packed[((size_t)b * n + c) * points + member * n + a] = from[a];
  Number* const other = data;
  data = packed, packed = other;
  const int first = axis[0], n_parts = parts[0], own = part[0];
  const MPI_Comm comm = line[0];
  axis[0] = axis[1], axis[1] = axis[2], axis[2] = first;
  parts[0] = parts[1], parts[1] = n_parts;
  part[0] = part[1], part[1] = own;
  line[0] = line[1], line[1] = comm;
}

/* Where in the cube data[i] is. */
static void locate(size_t i, int at[3]) {
  const size_t n = (size_t)points / parts[0], m = (size_t)points / parts[1], row = i / points;
  at[axis[0]] = (int)(part[0] * n + row / m), at[axis[1]] = (int)(part[1] * m + row % m),
  at[axis[2]] = (int)(i % points);
}

typedef Number field(const int at[3], const int wave[3]);

static Number plane_wave(const int at[3], const int wave[3]) {
  const long angle = (long)at[0] * wave[0] + (long)at[1] * wave[1] + (long)at[2] * wave[2];
  return conj(roots[angle % points]);
}

static Number single_point(const int at[3], const int wave[3]) {
  return at[0] == wave[0] && at[1] == wave[1] && at[2] == wave[2];
}

/* That data is the field, which a transform has multiplied by the number of points in the cube. */
static void check(field* expected, const int wave[3]) {
  const double scale = pow(points, -3);
  int at[3];
  for (size_t i = 0; i < volume; ++i) {
    locate(i, at);
    app_check(cabs(scale * data[i] - expected(at, wave)) <= 1e-12);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "fft POINTS REPEATS");
  const long repeats = arguments[1];
  points = (int)arguments[0];
  parts[0] = app_rows(), parts[1] = ranks / parts[0];
  part[0] = rank / parts[1], part[1] = rank % parts[1];
  if ((points & (points - 1)) != 0 || points > 1024) app_refuse("needs POINTS that are a power of two, at most 1024");
  if (points % parts[1] != 0 || points % parts[0] != 0)
    app_refuse("needs a power of two of ranks, POINTS squared at most");
  MPI_Comm_split(MPI_COMM_WORLD, part[1], part[0], &line[0]);
  MPI_Comm_split(MPI_COMM_WORLD, part[0], part[1], &line[1]);
  volume = (size_t)points * (size_t)points * (size_t)points / (size_t)ranks;
  data = app_array(volume, sizeof *data);
  packed = app_array(volume, sizeof *packed);
  roots = app_array((size_t)points, sizeof *roots);
  for (int i = 0; i < points; ++i) roots[i] = cexp(-2 * acos(-1) * I * i / points);

  for (long repeat = 0; repeat < repeats; ++repeat) {
    const int wave[3] = {(int)((1 + repeat) % points), (int)((2 + 3 * repeat) % points), (int)(5 * repeat % points)};
    int at[3];
    for (size_t i = 0; i < volume; ++i) locate(i, at), data[i] = plane_wave(at, wave);
    transform_pencils(0);
    turn();
    transform_pencils(0);
    turn();
    transform_pencils(0);
    check(single_point, wave);
    transform_pencils(1);
    turn();
    transform_pencils(1);
    turn();
    transform_pencils(1);
    check(plane_wave, wave);
  }
  free(data), free(packed), free(roots);
  MPI_Comm_free(&line[0]);
  MPI_Comm_free(&line[1]);
  return app_end((double)(repeats * points));
}
