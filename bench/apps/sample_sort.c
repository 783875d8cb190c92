/* SPDX-License-Identifier: Apache-2.0
 * ROUNDS times KEYS numbers of each rank are sorted over all: samples tell where to divide, and an all-to-all with
 * parts of all sizes brings each rank its own, as graph and particle codes send what others have to go on with. */
#include "app.h"

static int by_value(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static uint64_t sum_of(const uint64_t* keys, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += keys[i] ^ keys[i] >> 7;
  return sum;
}

/* Returns the sorted keys of this rank, and how many. */
static uint64_t* sorted(uint64_t* keys, size_t n, size_t* n_mine) {
  const size_t all = (size_t)ranks * (size_t)ranks;
  uint64_t *const sample = app_array((size_t)ranks, sizeof *sample), *const samples = app_array(all, sizeof *samples);
  int* const counts = app_array(4 * (size_t)ranks, sizeof *counts);
  int *const to = counts, *const to_at = to + ranks, *const from = to_at + ranks, *const from_at = from + ranks;
  qsort(keys, n, sizeof *keys, by_value);
  for (size_t i = 0; i < (size_t)ranks; ++i) sample[i] = keys[i * n / (size_t)ranks];
  MPI_Allgather(sample, ranks, MPI_UINT64_T, samples, ranks, MPI_UINT64_T, MPI_COMM_WORLD);
  qsort(samples, all, sizeof *samples, by_value);
  size_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    to_at[r] = (int)at;
    while (at < n && (r == ranks - 1 || keys[at] < samples[(size_t)(r + 1) * (size_t)ranks])) ++at;
    to[r] = (int)at - to_at[r];
  }
  MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
  size_t n_from = 0;
  for (int r = 0; r < ranks; ++r) from_at[r] = (int)n_from, n_from += (size_t)from[r];
  uint64_t* const mine = app_array(n_from + 1, sizeof *mine);
  MPI_Alltoallv(keys, to, to_at, MPI_UINT64_T, mine, from, from_at, MPI_UINT64_T, MPI_COMM_WORLD);
  qsort(mine, n_from, sizeof *mine, by_value);
  free(sample), free(samples), free(counts);
  *n_mine = n_from;
  return mine;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "sample_sort KEYS ROUNDS");
  const size_t n = (size_t)arguments[0];
  const long rounds = arguments[1];
  uint64_t* const keys = app_array(n, sizeof *keys);
  double middle = 0;
  for (long round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < n; ++i) keys[i] = app_noise(((size_t)round * (size_t)ranks + (size_t)rank) * n + i);
    const uint64_t sum = sum_of(keys, n);
    size_t n_mine;
    uint64_t* const mine = sorted(keys, n, &n_mine);
    /* No rank before has a larger one, and all together are those there were. */
    uint64_t largest = n_mine > 0 ? mine[n_mine - 1] : 0, before = 0;
    MPI_Exscan(&largest, &before, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    app_check(rank == 0 || n_mine == 0 || before <= mine[0]);
    uint64_t lost[2] = {n - n_mine, sum - sum_of(mine, n_mine)}, all_lost[2];
    MPI_Allreduce(lost, all_lost, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    app_check(all_lost[0] == 0 && all_lost[1] == 0);
    middle = (double)mine[n_mine / 2];
    free(mine);
  }
  free(keys);
  return app_end(middle);
}
