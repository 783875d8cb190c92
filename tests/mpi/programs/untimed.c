/* SPDX-License-Identifier: Apache-2.0
 * Calls that cannot wait, many of some kinds and few of others, whose numbers and bytes are known.
 *     untimed [killed]
 * killed: each process kills itself before MPI_Finalize. */
#include <mpi.h>
#include <signal.h>
#include <string.h>

enum { probes = 4000, tests = 3000, few = 100, rounds = 200, window = 16, puts = 4000, gets = 3000 };

static void probe(MPI_Comm comm, int n) {
  for (int i = 0; i < n; ++i) {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &flag, MPI_STATUS_IGNORE);
  }
}

/* The request is complete after the barrier of its sender, or later. */
static void test(MPI_Comm comm, int rank, int size) {
  char there = 0, here = 1;
  MPI_Request request;
  MPI_Irecv(&there, 1, MPI_CHAR, (rank + 1) % size, 1, comm, &request);
  int flag = 0;
  for (int i = 0; i < tests; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  MPI_Send(&here, 1, MPI_CHAR, (rank + size - 1) % size, 1, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void messages(MPI_Comm comm, int rank, int size) {
  double out[window], in[window];
  memset(out, 0, sizeof out);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[2 * window];
    for (int i = 0; i < window; ++i) MPI_Irecv(&in[i], 1, MPI_DOUBLE, left, i, comm, &requests[i]);
    for (int i = 0; i < window; ++i) MPI_Isend(&out[i], 1, MPI_DOUBLE, right, i, comm, &requests[window + i]);
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
  }
}

static void one_sided(MPI_Comm comm, int rank, int size) {
  int memory[4] = {0}, here = rank;
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, comm, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < puts; ++i) {
    MPI_Put(&here, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    if (i % 100 == 99) MPI_Win_flush_all(win);
  }
  for (int i = 0; i < gets; ++i) {
    MPI_Get(&here, 1, MPI_INT, (rank + 1) % size, 1, 1, MPI_INT, win);
    if (i % 100 == 99) MPI_Win_flush_all(win);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  probe(MPI_COMM_WORLD, probes);
  probe(other, few);
  test(MPI_COMM_WORLD, rank, size);
  messages(other, rank, size);
  one_sided(MPI_COMM_WORLD, rank, size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1 && strcmp(argv[1], "killed") == 0) raise(SIGKILL);
  MPI_Comm_free(&other);
  MPI_Finalize();
  return 0;
}
