/* SPDX-License-Identifier: Apache-2.0
 * Four ranks send messages of known sizes, and put and get in a window. */
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, number = 1, window_of[16] = {0};
  char data[5000] = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) MPI_Send(data, 100, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(data, 100, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 3) MPI_Send(data, 5000, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
  if (rank == 2) MPI_Recv(data, 5000, MPI_BYTE, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win window;
  MPI_Win_create(window_of, sizeof window_of, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (rank == 1) MPI_Put(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  int got[4];
  if (rank == 1) MPI_Get(got, 4, MPI_INT, 2, 0, 4, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
