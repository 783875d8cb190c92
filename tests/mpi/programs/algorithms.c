/* SPDX-License-Identifier: Apache-2.0
   Calls of one collective, named by the first argument, with the number of bytes and the root of the others: ten times
   on MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 1);
  const char* const what = argv[1];
  const int bytes = atoi(argv[2]), root = atoi(argv[3]);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* const in = calloc((size_t)bytes * (size_t)size + 1, 1);
  char* const out = calloc((size_t)bytes * (size_t)size + 1, 1);
  for (int i = 0; i < 10; ++i) {
    if (!strcmp(what, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(what, "bcast")) MPI_Bcast(in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce")) MPI_Reduce(in, out, bytes, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(in, out, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    if (!strcmp(what, "gather")) MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "scatter")) MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "allgather")) MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
    if (!strcmp(what, "alltoall")) MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
