/* SPDX-License-Identifier: Apache-2.0
   Calls of one collective, named by the first argument, with the number of bytes and the root of the others: ten times
   on MPI_COMM_WORLD.  Those in parts have 0, 1 or 2 times as many bytes from each rank, in turns; persistent ones are
   made once and started ten times. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 1);
  const char* const what = argv[1];
  const int bytes = atoi(argv[2]), root = atoi(argv[3]);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* const counts = calloc((size_t)size, sizeof(int));
  int* const places = calloc((size_t)size, sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = i % 3 * bytes;
    places[i] = i * 2 * bytes;
  }
  char* const in = calloc((size_t)bytes * (size_t)size * 2 + 1, 1);
  char* const out = calloc((size_t)bytes * (size_t)size * 2 + 1, 1);
  for (int i = 0; i < 10; ++i) {
    if (!strcmp(what, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(what, "bcast")) MPI_Bcast(in, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce")) MPI_Reduce(in, out, bytes, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(in, out, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    if (!strcmp(what, "gather")) MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "gatherv"))
      MPI_Gatherv(in, counts[rank], MPI_BYTE, out, counts, places, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "scatter")) MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!strcmp(what, "allgather")) MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
    if (!strcmp(what, "alltoall")) MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
  }
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  if (!strcmp(what, "bcast_init")) {
    MPI_Request request;
    MPI_Bcast_init(in, bytes, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 10; ++i) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
  }
#endif
  free(counts);
  free(places);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
