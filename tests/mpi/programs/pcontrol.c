/* SPDX-License-Identifier: Apache-2.0
 * Says what its arguments tell it to: "!" is a barrier, "1" MPI_Pcontrol(1), "1:name" MPI_Pcontrol(1, "name"). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    char const* name = strchr(argv[i], ':');
    int rc = MPI_SUCCESS;
    if (argv[i][0] == '!') {
      MPI_Barrier(MPI_COMM_WORLD);
    } else if (name != NULL) {
      rc = MPI_Pcontrol(atoi(argv[i]), name + 1);
    } else {
      rc = MPI_Pcontrol(atoi(argv[i]), (char const*)0x7); /* in place of what a register may hold */
    }
    if (rc != MPI_SUCCESS) puts("MPI_Pcontrol failed");
  }
  MPI_Finalize();
  return 0;
}
