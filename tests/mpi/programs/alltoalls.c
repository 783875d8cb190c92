/* SPDX-License-Identifier: Apache-2.0
 * MPI_Alltoall and MPI_Alltoallv, three times each, on communicators of 3, 4 and so on to all ranks. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* const to = calloc((size_t)size, 100);
  char* const from = calloc((size_t)size, 100);
  int* const counts = malloc((size_t)size * 4 * sizeof(int));
  int *leaving = counts, *arriving = counts + size, *at = counts + 2 * size;
  for (int ranks = 3; ranks <= size; ++ranks) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm == MPI_COMM_NULL) continue;
    for (int i = 0; i < ranks; ++i) {
      at[i] = 100 * i;
      leaving[i] = 1 + (rank + 2 * i) % 90; /* bytes from rank to i */
      arriving[i] = 1 + (i + 2 * rank) % 90;
    }
    for (int call = 0; call < 3; ++call) {
      MPI_Alltoall(to, 100, MPI_CHAR, from, 100, MPI_CHAR, comm);
      MPI_Alltoallv(to, leaving, at, MPI_CHAR, from, arriving, at, MPI_CHAR, comm);
    }
    MPI_Comm_free(&comm);
  }
  free(to), free(from), free(counts);
  MPI_Finalize();
  return 0;
}
