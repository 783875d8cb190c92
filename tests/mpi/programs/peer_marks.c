/* SPDX-License-Identifier: Apache-2.0
 * Messages that begin in one region, pause or count and end in another: `peer_marks CASE`, a ring. */
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, size, next, before;
static int in[100], out[100];

static void exchange(int n) {
  MPI_Sendrecv(out, n, MPI_INT, next, 0, in, 100, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Whatever is begun in a region is of that region, wherever it ends. */
static void regions(void) {
  MPI_Request r[2];
  exchange(1);
  commlens_begin("posts");
  MPI_Irecv(in, 100, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &r[0]);
  commlens_end("posts");
  commlens_begin("sends");
  MPI_Isend(out, 2, MPI_INT, next, 0, MPI_COMM_WORLD, &r[1]);
  commlens_begin("within");
  exchange(3);
  commlens_end("within");
  commlens_end("sends");
  commlens_begin("quiet");
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  exchange(4);
  MPI_Irecv(in, 100, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, 5, MPI_INT, next, 0, MPI_COMM_WORLD, &r[1]);
  commlens_end("quiet");
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  commlens_begin("posts");
  MPI_Recv_init(in, 100, MPI_INT, before, 0, MPI_COMM_WORLD, &r[0]);
  MPI_Send_init(out, 6, MPI_INT, next, 0, MPI_COMM_WORLD, &r[1]);
  commlens_end("posts");
  for (int i = 0; i < 2; ++i) {
    commlens_begin(i == 0 ? "sends" : "quiet");
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    commlens_end(i == 0 ? "sends" : "quiet");
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

/* Three messages from before the counters are cleared are received after it, and two are sent. */
static void reset(void) {
  MPI_Request r[3];
  exchange(50);
  for (int i = 0; i < 3; ++i) MPI_Isend(out, 10 + i, MPI_INT, next, 1, MPI_COMM_WORLD, &r[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  commlens_reset();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) MPI_Recv(in, 100, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  exchange(20);
  exchange(20);
}

/* Only one end clears its counters. */
static void reset_one(void) {
  exchange(50);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) commlens_reset();
  MPI_Barrier(MPI_COMM_WORLD);
  exchange(20);
}

static void pause_(void) {
  exchange(1);
  commlens_pause();
  exchange(2);
  commlens_resume();
  exchange(3);
}

/* At least three slices of time apart, however wide they are. */
static void slices(void) {
  for (int i = 1; i <= 3; ++i) {
    exchange(i);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(700000);
  }
  exchange(4);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size, before = (rank + size - 1) % size;
  if (strcmp(what, "regions") == 0) regions();
  if (strcmp(what, "reset") == 0) reset();
  if (strcmp(what, "reset-one") == 0) reset_one();
  if (strcmp(what, "pause") == 0) pause_();
  if (strcmp(what, "slices") == 0) slices();
  MPI_Finalize();
  return 0;
}
