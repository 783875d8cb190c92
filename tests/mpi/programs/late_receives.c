// SPDX-License-Identifier: Apache-2.0
// Rank 0 sends ten messages of 10,000 bytes and then works for 10 ms. Rank 1 receives each 1 ms late, while it asks for
// messages of another kind, so that its MPI library goes on. Both work at the same time only if a message does not wait
// for its receive.
#include <mpi.h>
#include <unistd.h>

static void ask(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
    int is_there;
    MPI_Iprobe(0, 1, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  static char message[10000];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) {
      if (rank == 0) {
        MPI_Send(message, sizeof message, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      } else {
        ask(1e-3);
        MPI_Recv(message, sizeof message, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    if (rank == 0) usleep(10000);
  }
  MPI_Finalize();
  return 0;
}
