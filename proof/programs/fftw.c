/* SPDX-License-Identifier: Apache-2.0
 * FFTW with MPI: transforms of several shapes and kinds there and back; prints what came back, and checksums. */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>

static double checksum(MPI_Comm comm, const double* values, ptrdiff_t count, ptrdiff_t first) {
  double mine = 0, all = 0;
  for (ptrdiff_t i = 0; i < count; ++i) mine += values[i] * (double)((first + i) % 17 + 1);
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
  return all;
}

static double worst(MPI_Comm comm, double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
  return all;
}

static void complex_2d(MPI_Comm comm, int rank, ptrdiff_t rows, ptrdiff_t columns, unsigned flags) {
  ptrdiff_t mine = 0, first = 0;
  const ptrdiff_t size = fftw_mpi_local_size_2d(rows, columns, comm, &mine, &first);
  fftw_complex* data = fftw_alloc_complex((size_t)size);
  fftw_plan there = fftw_mpi_plan_dft_2d(rows, columns, data, data, comm, FFTW_FORWARD, FFTW_ESTIMATE | flags);
  fftw_plan back = fftw_mpi_plan_dft_2d(rows, columns, data, data, comm, FFTW_BACKWARD,
                                        FFTW_ESTIMATE | (flags ? FFTW_MPI_TRANSPOSED_IN : 0u));
  const ptrdiff_t count = mine * columns;
  for (ptrdiff_t i = 0; i < count; ++i) {
    data[i][0] = sin((double)(first * columns + i));
    data[i][1] = cos((double)(first * columns + i));
  }
  fftw_execute(there);
  const double sum = flags ? 0 : checksum(comm, &data[0][0], 2 * count, 2 * first * columns);
  fftw_execute(back);
  double error = 0;
  for (ptrdiff_t i = 0; i < count; ++i) {
    const double scaled = data[i][0] / (double)(rows * columns);
    error = fmax(error, fabs(scaled - sin((double)(first * columns + i))));
  }
  error = worst(comm, error);
  if (rank == 0)
    printf("complex %td x %td flags %u: sum %.6e, back %s\n", rows, columns, flags, sum,
           error < 1e-12 ? "ok" : "WRONG");
  fftw_destroy_plan(there);
  fftw_destroy_plan(back);
  fftw_free(data);
}

static void real_3d(MPI_Comm comm, int rank, ptrdiff_t n) {
  ptrdiff_t mine = 0, first = 0;
  const ptrdiff_t size = fftw_mpi_local_size_3d(n, n, n / 2 + 1, comm, &mine, &first);
  double* in = fftw_alloc_real(2 * (size_t)size);
  fftw_complex* out = fftw_alloc_complex((size_t)size);
  fftw_plan plan = fftw_mpi_plan_dft_r2c_3d(n, n, n, in, out, comm, FFTW_ESTIMATE);
  const ptrdiff_t padded = 2 * (n / 2 + 1);
  for (ptrdiff_t i = 0; i < mine * n; ++i) {
    for (ptrdiff_t k = 0; k < n; ++k) in[i * padded + k] = (double)((first * n + i + k) % 5);
  }
  fftw_execute(plan);
  const double sum = checksum(comm, &out[0][0], 2 * mine * n * (n / 2 + 1), 2 * first * n * (n / 2 + 1));
  if (rank == 0) printf("real %td x %td x %td: sum %.6e\n", n, n, n, sum);
  fftw_destroy_plan(plan);
  fftw_free(in);
  fftw_free(out);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (ptrdiff_t n = 8; n <= 64; n *= 2) {
    complex_2d(MPI_COMM_WORLD, rank, n, n + 6, 0);
    complex_2d(MPI_COMM_WORLD, rank, n, n + 6, FFTW_MPI_TRANSPOSED_OUT);
    real_3d(MPI_COMM_WORLD, rank, n / 2);
  }
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  int place = 0;
  MPI_Comm_rank(half, &place);
  complex_2d(half, place, 16, 10, 0);
  MPI_Comm_free(&half);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return 0;
}
