/* SPDX-License-Identifier: Apache-2.0
 * Three lines that call MPI_Barrier, with 1, 3 and 5 calls. */
#include <mpi.h>

int main(int argc, char** argv) {
  int volatile three = 3, five = 5; /* or the compiler writes the calls out */
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD); /* 1 call */
  for (int i = 0; i < three; ++i) {
    MPI_Barrier(MPI_COMM_WORLD); /* 3 calls */
  }
  for (int i = 0; i < five; ++i) {
    MPI_Barrier(MPI_COMM_WORLD); /* 5 calls */
  }
  MPI_Finalize();
  return 0;
}
