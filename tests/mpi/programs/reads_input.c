/* SPDX-License-Identifier: Apache-2.0
 * Prints how many bytes it can read from its standard input, after MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char bytes[4096];
  long all = 0;
  for (ssize_t n; (n = read(0, bytes, sizeof bytes)) > 0;) all += n;
  printf("read %ld\n", all);
  MPI_Finalize();
  return 0;
}
