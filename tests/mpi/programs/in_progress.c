/* SPDX-License-Identifier: Apache-2.0
 * in_progress SECONDS HOW: rank 1 waits so long for 1000 bytes in one MPI_Recv, while rank 0 is in region "compute".
 * HOW: "region" and "call", rank 0 or rank 1 then ends by a signal, and with it the job; "send", rank 0 sends the
 * message. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(int number) {
  (void)number;
  abort();
}

int main(int argc, char** argv) {
  static char bytes[1000];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  signal(SIGALRM, end);
  if (strcmp(argv[2], rank == 0 ? "region" : "call") == 0) alarm((unsigned)atoi(argv[1]));
  if (rank == 0) {
    MPI_Pcontrol(1, "compute");
    sleep((unsigned)atoi(argv[1]) + (strcmp(argv[2], "send") != 0));
    if (strcmp(argv[2], "call") == 0) pause();
    MPI_Pcontrol(-1, "compute");
    MPI_Send(bytes, sizeof bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(bytes, sizeof bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  usleep(1500000);
  MPI_Finalize();
  return 0;
}
