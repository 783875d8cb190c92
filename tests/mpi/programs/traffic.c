/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic PATTERN [DIMS...]: known messages on MPI_COMM_WORLD, on rows and columns of a grid, and on the world the
 * other way round.  tests/mpi/test_peers.py has the same rules in Python.
 *
 * From s to d go messages_of(s, d) messages, number k of size_of(s, d, k) bytes, in different ways of sending; receives
 * name the sender or not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4096, MOST = 4096 };

static int dims[3], ndims;

static int messages_of(const char* pattern, int s, int d, int n) {
  if (strcmp(pattern, "ring") == 0) return d == (s + 1) % n ? 3 : 0;
  if (strcmp(pattern, "all") == 0) return 1 + (s + d) % 2;
  if (strcmp(pattern, "sparse") == 0)
    return ((unsigned)(s * 31 + d * 17) * 2654435761u >> 28) < 3 ? 1 + (s * d) % 4 : 0;
  if (strcmp(pattern, "transpose") == 0) {
    int q = 1;
    while ((q + 1) * (q + 1) <= n) ++q;
    return s < q * q && d == s % q * q + s / q ? 2 : 0;
  }
  /* stencil: neighbours in a grid without wrap-around, the last dimension varying fastest */
  int distance = 0, size = 1;
  for (int i = ndims - 1; i >= 0; --i) {
    distance += abs(s / size % dims[i] - d / size % dims[i]);
    size *= dims[i];
  }
  return s < size && d < size && distance == 1 ? 2 : 0;
}

static int size_of(int s, int d, int k) { return (7 * s + 13 * d + 101 * k) % 3000; }

static void talk(const char* pattern, MPI_Comm comm) {
  static char out[LARGEST], in[LARGEST];
  MPI_Request requests[MOST];
  int rank, n, used = 0, persistent[MOST], started = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n);
  for (int s = 0; s < n; ++s) {
    for (int k = 0; k < messages_of(pattern, s, rank, n); ++k) {
      persistent[used] = k == 2;
      const int source = (s + k) % 2 == 0 ? MPI_ANY_SOURCE : s;
      /* A tag of its own: a wildcard takes nobody else's. */
      const int tag = 4 * s + k;
      if (k == 2) {
        MPI_Recv_init(in, LARGEST, MPI_CHAR, source, tag, comm, &requests[used]);
        MPI_Start(&requests[used++]);
      } else {
        MPI_Irecv(in, LARGEST, MPI_CHAR, source, tag, comm, &requests[used++]);
      }
    }
  }
  MPI_Barrier(comm);
  for (int d = 0; d < n; ++d) {
    for (int k = 0; k < messages_of(pattern, rank, d, n); ++k) {
      const int bytes = size_of(rank, d, k), tag = 4 * rank + k;
      persistent[used] = 0;
      switch (k) {
        case 0: MPI_Isend(out, bytes, MPI_CHAR, d, tag, comm, &requests[used++]); break;
        case 1: MPI_Send(out, bytes, MPI_CHAR, d, tag, comm); break;
        case 2:
          persistent[used] = 1;
          MPI_Send_init(out, bytes, MPI_CHAR, d, tag, comm, &requests[used]);
          MPI_Start(&requests[used++]);
          break;
        default: MPI_Issend(out, bytes, MPI_CHAR, d, tag, comm, &requests[used++]);
      }
    }
  }
  MPI_Status* const statuses = used % 2 == 0 ? MPI_STATUSES_IGNORE : malloc((size_t)used * sizeof(MPI_Status));
  MPI_Waitall(used, requests, statuses);
  if (statuses != MPI_STATUSES_IGNORE) free(statuses);
  for (int i = 0; i < used; ++i) {
    if (persistent[i]) MPI_Request_free(&requests[i]);
    started += persistent[i];
  }
  MPI_Sendrecv(out, 5, MPI_CHAR, MPI_PROC_NULL, 0, in, 5, MPI_CHAR, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
}

/* Puts to the right, gets from the left, accumulates two to the right. */
static void reach(MPI_Comm comm) {
  static char window[LARGEST], own[LARGEST];
  int rank, n;
  long one = 1, old;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n);
  if (n == 1) return; /* of which Open MPI 4.1.4 makes no window with some transports */
  MPI_Win win;
  MPI_Win_create(window, LARGEST, 1, MPI_INFO_NULL, comm, &win);
  MPI_Win_fence(0, win);
  MPI_Put(own, 100 + rank, MPI_CHAR, (rank + 1) % n, 0, 100 + rank, MPI_CHAR, win);
  MPI_Put(own, 7, MPI_CHAR, MPI_PROC_NULL, 0, 7, MPI_CHAR, win);
  MPI_Win_fence(0, win);
  MPI_Get(own, 200 + rank, MPI_CHAR, (rank + n - 1) % n, 0, 200 + rank, MPI_CHAR, win);
  MPI_Win_fence(0, win);
  MPI_Accumulate(&one, 1, MPI_LONG, (rank + 2) % n, 8, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % n, 0, win);
  MPI_Fetch_and_op(&one, &old, MPI_LONG, (rank + 1) % n, 16, MPI_SUM, win);
  MPI_Win_unlock((rank + 1) % n, win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const pattern = argv[1];
  for (int i = 2; i < argc; ++i) dims[ndims++] = atoi(argv[i]);
  int rank, n, columns = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  while ((columns + 1) * (columns + 1) <= n) ++columns;
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank, &comms[2]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[3]);
  for (int i = 0; i < 4; ++i) {
    strcmp(pattern, "one-sided") == 0 ? reach(comms[i]) : talk(pattern, comms[i]);
    if (i > 0) MPI_Comm_free(&comms[i]);
  }
  MPI_Finalize();
  return 0;
}
