/* SPDX-License-Identifier: Apache-2.0
 * On two ranks, procedures that came after MPI 3.1, as far as mpi.h has them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, buffer[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int peer = 1 - rank;
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
  MPI_Request request;
  /* 3 times 16 bytes */
  MPI_Allreduce_init(buffer, other, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  /* 16 bytes to the other */
  MPI_Isendrecv(buffer, 4, MPI_INT, peer, 1, other, 4, MPI_INT, peer, 1, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* 2 partitions of 2 * 4 bytes from rank 0 to rank 1 */
  if (rank == 0) {
    MPI_Psend_init(buffer, 2, 2, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(0, request);
    MPI_Pready(1, request);
  } else {
    MPI_Precv_init(buffer, 2, 2, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
#endif
#if MPI_VERSION >= 4
  MPI_Bcast_c(buffer, 2, MPI_INT, 0, MPI_COMM_WORLD);
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  const int size = 1000 + MPI_BSEND_OVERHEAD;
  char* space = malloc(size);
  int done = 0, length;
  MPI_Comm_attach_buffer(MPI_COMM_WORLD, space, size);
  MPI_Bsend(buffer, 1, MPI_INT, peer, 3, MPI_COMM_WORLD);
  MPI_Recv(other, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_flush_buffer(MPI_COMM_WORLD);
  MPI_Comm_detach_buffer(MPI_COMM_WORLD, &space, &length);
  free(space);
  MPI_Irecv(other, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &request);
  MPI_Send(buffer, 1, MPI_INT, peer, 4, MPI_COMM_WORLD);
  while (!done) MPI_Request_get_status_all(1, &request, &done, MPI_STATUSES_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
  if (rank == 0) printf("done %d\n", MPI_VERSION);
  return MPI_Finalize();
}
