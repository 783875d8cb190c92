/* SPDX-License-Identifier: Apache-2.0
 * What the status of MPI_Isendrecv has: n integers are received, n = 1, 2, 3, with tag 7 from the rank before. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, right = 0, out[3] = {0}, in[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int after = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int n = 1; n <= 3; ++n) {
    MPI_Request request;
    MPI_Status status;
    int count = -1;
    MPI_Isendrecv(out, n, MPI_INT, after, 7, in, 3, MPI_INT, before, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    right += count == n && status.MPI_SOURCE == before && status.MPI_TAG == 7;
  }
  printf("%d of 3 are right\n", right);
  MPI_Finalize();
  return 0;
}
