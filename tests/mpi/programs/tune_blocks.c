// SPDX-License-Identifier: Apache-2.0
// Calls MPI_Reduce_scatter_block 100 times with blocks of 1 KiB, and computes a little between the calls.
#include <mpi.h>
#include <stdlib.h>

enum { CALLS = 100, COUNT = 128 };

int main(int argc, char** argv) {
  int size;
  volatile double sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *from = calloc((size_t)size * COUNT, sizeof *from), *to = calloc(COUNT, sizeof *to);
  for (int i = 0; i < CALLS; i++) {
    for (int k = 0; k < 1000; k++) sum += k;
    MPI_Reduce_scatter_block(from, to, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  free(from), free(to);
  MPI_Finalize();
  return 0;
}
