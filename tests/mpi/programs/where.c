/* SPDX-License-Identifier: Apache-2.0
 * Every rank prints its number and its host, and sends nothing. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank;
  char name[256] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  gethostname(name, sizeof name - 1);
  printf("%d %s\n", rank, name);
  MPI_Finalize();
  return 0;
}
