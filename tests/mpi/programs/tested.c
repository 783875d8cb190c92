/* SPDX-License-Identifier: Apache-2.0
 * One call of MPI_Test that completes many requests of several communicators; prints how often it was called.  Requests
 * are sends and receives, some of any source; statuses are given or ignored; one receive in FAILING has no room for its
 * message. */
#include <mpi.h>
#include <stdio.h>

enum { rounds = 2000, FAILING = 100, words = 3 };

static MPI_Comm comms[3]; /* the messages of the last one do not fit */
static long tests[3];
static int rank, other;

static void finish(int comm, MPI_Request* request, MPI_Status* status) {
  for (int done = 0; !done;) {
    ++tests[comm];
    if (MPI_Test(request, &done, status) != MPI_SUCCESS) break; /* not every library sets the flag then */
  }
  if (*request != MPI_REQUEST_NULL) printf("a request is left\n");
}

static void exchange(int i) {
  const int comm = i % FAILING == 0 ? 2 : i % 2, room = comm == 2 ? 1 : words;
  int out[words] = {i, i, i}, in[words] = {-1, -1, -1};
  MPI_Request receive, send;
  MPI_Status status;
  MPI_Irecv(in, room, MPI_INT, i % 3 == 0 ? MPI_ANY_SOURCE : other, i % 7, comms[comm], &receive);
  MPI_Isend(out, words, MPI_INT, other, i % 7, comms[comm], &send);
  finish(comm, &receive, i % 5 == 0 ? &status : MPI_STATUS_IGNORE);
  finish(comm, &send, i % 5 == 1 ? &status : MPI_STATUS_IGNORE);
  if (comm != 2 && in[words - 1] != i) printf("wrong data\n");
  if (comm != 2 && i % 5 == 0 && status.MPI_SOURCE != other) printf("wrong status\n");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH 4.0 asks this one for a request's error */
  for (int i = 1; i <= rounds; ++i) exchange(i);
  printf("%d %ld %ld %ld\n", rank, tests[0], tests[1], tests[2]);
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}
