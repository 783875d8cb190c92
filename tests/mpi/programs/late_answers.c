// SPDX-License-Identifier: Apache-2.0
// Rank 0 sends 20 messages of 10,000 bytes and waits for an answer to each. Rank 1 sleeps 75 ms before it receives, but
// not if the limit for eager messages is raised: so the variable makes the run faster, however busy the machine is.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  static char message[10000];
  const int is_raised = getenv("OMPI_MCA_btl_vader_eager_limit") != NULL;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 20; ++i) {
    if (rank == 0) {
      MPI_Send(message, sizeof message, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(message, sizeof message, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      if (!is_raised) usleep(75000);
      MPI_Recv(message, sizeof message, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(message, sizeof message, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
  MPI_Finalize();
  return 0;
}
