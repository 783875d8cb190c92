/* SPDX-License-Identifier: Apache-2.0
 *
 * One use of MPI, chosen by name, a known number of times; features.py has the numbers that a tool should show. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMES = 7 };

static int rank, size, in = 1, out[64];

static void self(void) {
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static void nonblocking(void) {
  for (int i = 0; i < TIMES; ++i) {
    MPI_Request request;
    MPI_Iallreduce(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void neighbor(void) {
  const int periods = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &ring);
  int both[2] = {rank, rank};
  for (int i = 0; i < TIMES; ++i) MPI_Neighbor_alltoall(both, 1, MPI_INT, out, 1, MPI_INT, ring);
  MPI_Comm_free(&ring);
}

static void persistent(void) {
  MPI_Request requests[2];
  MPI_Send_init(&in, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(out, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < TIMES; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}

static void onesided(void) {
  MPI_Win win;
  MPI_Win_create(out, sizeof out, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int i = 0; i < TIMES; ++i) {
    MPI_Win_fence(0, win);
    MPI_Put(&in, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
  }
  MPI_Win_free(&win);
}

static void file(void) {
  MPI_File handle;
  MPI_File_open(MPI_COMM_WORLD, "written", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &handle);
  for (int i = 0; i < TIMES; ++i) MPI_File_write_at(handle, 4 * (size * i + rank), &in, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&handle);
}

static void intercommunicator(void) {
  MPI_Comm half, both;
  const int is_high = rank >= size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, is_high, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_high ? 0 : size / 2, 5, &both);
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, both);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void idup(void) {
  MPI_Comm copy;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, copy);
  MPI_Comm_free(&copy);
}

static void named(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "ocean");
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, copy);
  MPI_Comm_free(&copy);
}

/* Each communicator is freed before the next is made, which often gets its handle. */
static void reused(void) {
  for (int i = 0; i < TIMES; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
  }
}

static void wildcard(void) {
  for (int i = 0; i < TIMES; ++i) {
    MPI_Request request;
    MPI_Isend(&in, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
    MPI_Recv(out, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void killed(void) {
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD); /* so that all have returned from all sums */
  raise(SIGKILL);
}

static void aborted(void) {
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void large(void) {
#if MPI_VERSION >= 4
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce_c(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
}

static const struct use {
  const char* name;
  void (*function)(void);
} uses[] = {
    {"self", self},
    {"nonblocking", nonblocking},
    {"neighbor", neighbor},
    {"persistent", persistent},
    {"onesided", onesided},
    {"file", file},
    {"intercommunicator", intercommunicator},
    {"idup", idup},
    {"named", named},
    {"reused", reused},
    {"wildcard", wildcard},
    {"killed", killed},
    {"aborted", aborted},
    {"large", large},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof uses / sizeof *uses; ++i) {
    if (argc == 2 && strcmp(argv[1], uses[i].name) == 0) uses[i].function();
  }
  MPI_Finalize();
  return 0;
}
