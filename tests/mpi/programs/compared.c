// SPDX-License-Identifier: Apache-2.0
// Splits MPI_COMM_WORLD into pairs; in each, rank 0 sends as many messages of 1000 bytes as argv[1] says.
// With -DNEWER the program makes another communicator first, and its call sites are elsewhere.
#include <mpi.h>
#include <stdlib.h>

__attribute__((noinline)) static MPI_Comm make_pairs(int rank) {
  MPI_Comm pairs;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pairs);
  return pairs;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, place;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef NEWER
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
#endif
  MPI_Comm pairs = make_pairs(rank);
  MPI_Comm_rank(pairs, &place);
  static char buffer[1000];
  for (int i = 0; i < atoi(argv[1]); ++i) {
    if (place == 0) {
      MPI_Send(buffer, sizeof buffer, MPI_CHAR, 1, 0, pairs);
    } else {
      MPI_Recv(buffer, sizeof buffer, MPI_CHAR, 0, 0, pairs, MPI_STATUS_IGNORE);
    }
  }
  MPI_Finalize();
  return 0;
}
