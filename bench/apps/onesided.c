/* SPDX-License-Identifier: Apache-2.0
 * Around a ring: WINDOWS times WINDOW puts of 8 bytes and one sum into the memory of the next rank, and a flush. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "onesided WINDOWS WINDOW");
  const long windows = arguments[0], window = arguments[1];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  long *memory, *const out = app_array((size_t)window, sizeof *out);
  MPI_Win win;
  /* Whole cache lines: of a size that is no multiple of 16, MPICH 4.0.2 takes others' memory to begin elsewhere. */
  const size_t bytes = ((size_t)(window + 1) * sizeof *memory + 63) / 64 * 64;
  MPI_Win_allocate((MPI_Aint)bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  for (long i = 0; i <= window; ++i) memory[i] = 0;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long w = 0; w < windows; ++w) {
    for (long i = 0; i < window; ++i) {
      out[i] = w * window + i + rank;
      MPI_Put(&out[i], 1, MPI_LONG, right, i, 1, MPI_LONG, win);
    }
    MPI_Accumulate(&w, 1, MPI_LONG, right, window, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(right, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  for (long i = 0; i < window; ++i) app_check(memory[i] == (windows - 1) * window + i + left);
  const long sum = memory[window];
  app_check(sum == windows * (windows - 1) / 2);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  free(out);
  return app_end((double)sum);
}
