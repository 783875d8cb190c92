/* SPDX-License-Identifier: Apache-2.0
 * A job whose ranks have a hundred rows of counters each, and that times what a profiler does in MPI_Finalize.
 *
 * Messages to oneself of 20 sizes by five procedures: a row for each, on MPI_COMM_WORLD alone, because hundreds of
 * ranks with many communicators of all need more memory than one machine has.  A rank prints two readings of the clock,
 * which all processes of a machine share: when it calls MPI_Finalize, and when MPI_Finalize deletes the attributes of
 * MPI_COMM_WORLD.  MPICH and its relatives do that after those of MPI_COMM_SELF, in which commlens collects. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 20 };
static double collected;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int at_delete(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  collected = now();
  return MPI_SUCCESS;
}

/* One call site for each procedure, so that each has one row for each size. */
__attribute__((noinline)) static MPI_Request receive(char* in, int size, int rank) {
  MPI_Request request;
  MPI_Irecv(in, size, MPI_CHAR, rank, 0, MPI_COMM_WORLD, &request);
  return request;
}

__attribute__((noinline)) static MPI_Request post(char* out, int size, int rank) {
  MPI_Request request;
  MPI_Isend(out, size, MPI_CHAR, rank, 0, MPI_COMM_WORLD, &request);
  return request;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_delete, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
  char* out = calloc(2, 1 << (SIZES - 1));
  char* in = out + (1 << (SIZES - 1));
  for (int bit = 0; bit < SIZES; ++bit) {
    const int size = 1 << bit;
    MPI_Request request = receive(in, size, rank);
    MPI_Send(out, size, MPI_CHAR, rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    request = post(out, size, rank);
    MPI_Recv(in, size, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, size, MPI_CHAR, rank, 0, in, size, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double called = now();
  MPI_Finalize();
  printf("%.9f %.9f\n", called, collected);
  free(out);
  return 0;
}
