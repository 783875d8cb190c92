/* SPDX-License-Identifier: Apache-2.0
 * Communicators that follow the hosts: one for each host's ranks, and one of their first ranks.
 * Every rank prints its number, its host, and how many ranks it shares that with. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, on_host, of_host, sum;
  char name[256] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm host, first;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_set_name(host, "host");
  MPI_Comm_rank(host, &on_host);
  MPI_Comm_size(host, &of_host);
  MPI_Comm_split(MPI_COMM_WORLD, on_host == 0 ? 0 : MPI_UNDEFINED, rank, &first);
  for (int i = 0; i < 7; ++i) {
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, host);
    if (first != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, first);
    MPI_Bcast(&sum, 1, MPI_INT, 0, host);
  }
  gethostname(name, sizeof name - 1);
  printf("%d %s %d %d\n", rank, name, of_host, sum);
  if (first != MPI_COMM_NULL) MPI_Comm_free(&first);
  MPI_Comm_free(&host);
  MPI_Finalize();
  return 0;
}
