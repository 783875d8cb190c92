/* SPDX-License-Identifier: Apache-2.0
 * Each collective of Open MPI's rules on communicators of 3, 4, 5 and 16 ranks, in blocks of 100 and of 1,000 bytes. */
#include <mpi.h>
#include <stdlib.h>

enum { MOST = 16, LARGE = 1000, CALLS = 2 };

static char from[MOST * LARGE], to[MOST * LARGE];

static void call_all(MPI_Comm comm, int bytes) {
  int size, counts[MOST], at[MOST];
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < size; ++i) counts[i] = bytes, at[i] = i * bytes;
  for (int i = 0; i < CALLS; ++i) {
    MPI_Allgather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, comm);
    MPI_Allgatherv(from, bytes, MPI_CHAR, to, counts, at, MPI_CHAR, comm);
    MPI_Allreduce(from, to, bytes, MPI_CHAR, MPI_MAX, comm);
    MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, comm);
    MPI_Alltoallv(from, counts, at, MPI_CHAR, to, counts, at, MPI_CHAR, comm);
    MPI_Barrier(comm);
    MPI_Bcast(from, bytes, MPI_CHAR, 0, comm);
    MPI_Exscan(from, to, bytes, MPI_CHAR, MPI_MAX, comm);
    MPI_Gather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, 0, comm);
    MPI_Reduce(from, to, bytes, MPI_CHAR, MPI_MAX, 0, comm);
    MPI_Reduce_scatter(from, to, counts, MPI_CHAR, MPI_MAX, comm);
    MPI_Reduce_scatter_block(from, to, bytes, MPI_CHAR, MPI_MAX, comm);
    MPI_Scan(from, to, bytes, MPI_CHAR, MPI_MAX, comm);
    MPI_Scatter(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, 0, comm);
  }
}

int main(int argc, char** argv) {
  const int sizes[] = {3, 4, 5, MOST};
  const int blocks[] = {100, LARGE};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 8; ++i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < sizes[i / 2] ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm == MPI_COMM_NULL) continue;
    call_all(comm, blocks[i % 2]);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}
