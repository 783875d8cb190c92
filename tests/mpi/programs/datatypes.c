// SPDX-License-Identifier: Apache-2.0
// Datatypes of every constructor, each used in known calls.  Two ranks.  "killed": all processes end by SIGKILL.
#include <mpi.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char from[1 << 16], to[1 << 16];
static MPI_Comm pair;  // a duplicate of MPI_COMM_WORLD
static int rank;
static long handler_calls;

static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handler_calls;
}

// One message from rank 0 to rank 1, and the end of the datatype.
static void use(MPI_Datatype* type) {
  MPI_Type_commit(type);
  if (rank == 0) MPI_Send(from + 32768, 1, *type, 1, 0, pair);
  if (rank == 1) MPI_Recv(to + 32768, 1, *type, 0, 0, pair, MPI_STATUS_IGNORE);
  MPI_Type_free(type);
}

static void constructors(void) {
  MPI_Datatype type, inner;
  for (int i = 0; i < 5; ++i) {  // equal trees are one datatype
    MPI_Type_vector(100, 3, 8, MPI_DOUBLE, &type);
    use(&type);
  }
  MPI_Type_contiguous(7, MPI_INT, &type);
  use(&type);
  MPI_Type_create_hvector(3, 2, 100, MPI_SHORT, &type);
  use(&type);
  const int lengths[] = {1, 2}, places[] = {0, 4};
  const MPI_Aint at[] = {0, 40};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
  use(&type);
  MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &type);
  use(&type);
  MPI_Type_create_indexed_block(2, 3, places, MPI_FLOAT, &type);
  use(&type);
  MPI_Type_create_hindexed_block(2, 3, at, MPI_FLOAT, &type);
  use(&type);
  const int sizes[] = {8, 6}, parts[] = {4, 2}, starts[] = {1, 3};
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &type);
  use(&type);
  const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  const int grid[] = {2, 1};
  MPI_Type_create_darray(2, 0, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
  use(&type);
  MPI_Type_create_resized(MPI_INT, -4, 16, &type);
  use(&type);
  MPI_Type_dup(MPI_DOUBLE, &type);
  use(&type);
  MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &inner);
  const int counts[] = {2, 1};
  const MPI_Aint members[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, inner};
  MPI_Type_create_struct(2, counts, members, types, &type);
  MPI_Type_free(&inner);  // the struct keeps it
  use(&type);
  MPI_Type_contiguous(2, MPI_CHAR, &type);  // made, but never used
  MPI_Type_commit(&type);
  MPI_Type_free(&type);
}

// Handles are reused: 3 trees, 999 handles.
static void short_lived(void) {
  for (int i = 0; i < 999; ++i) {
    MPI_Datatype type;
    MPI_Type_contiguous(i % 3 + 10, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(from, 1, type, 0, 0, to, i % 3 + 10, MPI_FLOAT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  }
}

// The bytes of requests are counted when they are known.
static void requests(void) {
  MPI_Datatype row;
  MPI_Request request;
  MPI_Type_contiguous(5, MPI_LONG, &row);
  MPI_Type_commit(&row);
  const int other = 1 - rank;
  MPI_Irecv(to, 10, row, other, 0, pair, &request);  // room for more than arrives
  MPI_Send(from, 2, row, other, 0, pair);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request starts[2];
  MPI_Recv_init(to, 1, row, other, 1, pair, &starts[0]);
  MPI_Send_init(from, 1, row, other, 1, pair, &starts[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, starts);
    MPI_Waitall(2, starts, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&starts[i]);
  MPI_Type_free(&row);
}

static void collectives(void) {
  MPI_Datatype row, column;
  MPI_Type_vector(4, 1, 1, MPI_UNSIGNED, &row);
  MPI_Type_commit(&row);
  MPI_Type_vector(4, 1, 2, MPI_UNSIGNED, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(MPI_IN_PLACE, to, 3, MPI_UNSIGNED_LONG, MPI_SUM, pair);
  MPI_Bcast(to, 1, column, 0, pair);
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : from, 1, row, to, 4, MPI_UNSIGNED, 0, pair);
  MPI_Alltoall(from, 1, column, to, 1, row, pair);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, 1, row, pair);
  const int ones[] = {1, 1}, nowhere[] = {0, 128};
  const MPI_Datatype both[] = {row, column}, rows[] = {row, row};
  MPI_Alltoallw(from, ones, nowhere, both, to, ones, nowhere, rank == 0 ? rows : both, pair);
  MPI_Win win;
  MPI_Win_create(to, sizeof to, 1, MPI_INFO_NULL, pair, &win);
  MPI_Win_fence(0, win);
  MPI_Put(from, 1, row, 1 - rank, 0, 1, column, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Type_free(&row);
  MPI_Type_free(&column);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(handler, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
  MPI_Comm_dup(MPI_COMM_WORLD, &pair);
  MPI_Comm_rank(pair, &rank);
  constructors();
  short_lived();
  requests();
  collectives();
  if (handler_calls != 0) printf("%ld errors\n", handler_calls);
  MPI_Barrier(pair);
  if (argc > 1 && strcmp(argv[1], "killed") == 0) raise(SIGKILL);
  MPI_Finalize();
  return 0;
}
