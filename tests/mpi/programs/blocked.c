/* SPDX-License-Identifier: Apache-2.0
 * A job that waits for ever: `blocked FOLDER HOW`.
 *
 * Rank 0 stays outside MPI.  Each other rank waits for a message in a duplicate of MPI_COMM_WORLD with reversed ranks,
 * in the call HOW.  A rank writes process id and time to FOLDER/<rank> right before it waits. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void note(const char* folder, int rank) {
  char name[4096], unfinished[4096];
  struct timespec now;
  snprintf(name, sizeof name, "%s/%d", folder, rank);
  snprintf(unfinished, sizeof unfinished, "%s/%d.new", folder, rank);
  FILE* const file = fopen(unfinished, "w");
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(file, "%d %lld\n", (int)getpid(), now.tv_sec * 1000000000LL + now.tv_nsec);
  fclose(file);
  rename(unfinished, name);
}

int main(int argc, char** argv) {
  int rank, size, got = 0, sent = 1;
  MPI_Comm reversed;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  const int last = size - 1; /* world rank 0 */
  note(argv[1], rank);
  if (rank == 0) {
    for (;;) pause();
  }
  if (strcmp(argv[2], "recv") == 0)
    MPI_Recv(&got, 1, MPI_INT, last, 70 + rank, reversed, MPI_STATUS_IGNORE); /* waits */
  if (strcmp(argv[2], "any") == 0) MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, reversed, MPI_STATUS_IGNORE);
  if (strcmp(argv[2], "probe") == 0) MPI_Probe(last, 70 + rank, reversed, MPI_STATUS_IGNORE);
  if (strcmp(argv[2], "sendrecv") == 0)
    MPI_Sendrecv(&sent, 1, MPI_INT, last, 1, &got, 1, MPI_INT, last, 70 + rank, reversed, MPI_STATUS_IGNORE);
  if (strcmp(argv[2], "ssend") == 0) MPI_Ssend(&sent, 1, MPI_INT, last, 70 + rank, reversed);
  if (strcmp(argv[2], "wait") == 0) {
    MPI_Irecv(&got, 1, MPI_INT, last, 70 + rank, reversed, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
