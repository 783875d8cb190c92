/* SPDX-License-Identifier: Apache-2.0
 * Datatypes of every shape, on 2 ranks: what a call moves, and whether its bytes lie side by side.  The send on the
 * n-th communicator (in the order made) tests the n-th type; the message goes to this same rank. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define WORLD MPI_COMM_WORLD
static int rank, other, data[64], into[64];
static char* const middle = (char*)&data[32];

struct padded {
  char c;
  int i;
};

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

/* One message of a type, on a communicator of its own. */
static void send(int count, MPI_Datatype type) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Irecv(into, sizeof into, MPI_BYTE, rank, 0, comm, &request);
  MPI_Send(middle, count, type, rank, 0, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

static void shapes(void) {
  MPI_Datatype type;
  send(4, MPI_INT); /* 1: whole */
  MPI_Type_contiguous(3, MPI_INT, &type);
  send(2, committed(type)); /* 2: whole */
  MPI_Type_free(&type);
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  send(1, committed(type)); /* 3: a hole */
  MPI_Type_free(&type);
  MPI_Type_vector(3, 2, 2, MPI_INT, &type);
  send(2, committed(type)); /* 4: a vector without a hole */
  MPI_Type_free(&type);
  MPI_Type_create_resized(MPI_INT, 0, 8, &type);
  send(1, committed(type)); /* 5: one element has no neighbour */
  send(2, type);            /* 6: two have a hole between them */
  MPI_Type_free(&type);
  MPI_Type_create_subarray(2, (int[]){4, 4}, (int[]){2, 4}, (int[]){1, 0}, MPI_ORDER_C, MPI_INT, &type);
  send(1, committed(type)); /* 7: whole rows */
  MPI_Type_free(&type);
  MPI_Type_create_subarray(2, (int[]){4, 4}, (int[]){2, 2}, (int[]){1, 1}, MPI_ORDER_C, MPI_INT, &type);
  send(1, committed(type)); /* 8: a part of each row */
  MPI_Type_free(&type);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){offsetof(struct padded, c), offsetof(struct padded, i)},
                         (MPI_Datatype[]){MPI_CHAR, MPI_INT}, &type);
  send(1, committed(type)); /* 9: padding */
  MPI_Type_free(&type);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_FLOAT, MPI_INT}, &type);
  send(3, committed(type)); /* 10: no padding */
  MPI_Type_free(&type);
  MPI_Type_contiguous(0, MPI_INT, &type);
  send(5, committed(type)); /* 11: no bytes at all */
  MPI_Type_free(&type);
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  send(0, committed(type)); /* 12: no elements */
  MPI_Type_free(&type);
  MPI_Type_create_hvector(3, 1, -8, MPI_INT, &type);
  send(1, committed(type)); /* 13: downwards, with holes */
  MPI_Type_free(&type);
  MPI_Type_create_resized(MPI_INT, -4, 4, &type);
  send(3, committed(type)); /* 14: a lower bound below zero, and no hole */
  MPI_Type_free(&type);
  MPI_Type_create_resized(MPI_INT, 0, -8, &type);
  send(3, committed(type)); /* 15: a negative extent, with holes */
  MPI_Type_free(&type);
  MPI_Type_create_indexed_block(2, 2, (int[]){0, 6}, MPI_INT, &type);
  send(1, committed(type)); /* 16: a hole */
  MPI_Type_free(&type);
  MPI_Type_dup(MPI_DOUBLE, &type);
  send(2, type); /* 17: another name for a whole one */
  MPI_Type_free(&type);
  MPI_Type_vector(4, 1, 2, MPI_INT, &type);
  MPI_Datatype const old = committed(type);
  MPI_Type_contiguous(1, old, &type);
  send(1, committed(type)); /* 18: made of one with holes */
  MPI_Type_free(&type);
  MPI_Type_free(&(MPI_Datatype){old});
}

/* Calls with several types, of which one has holes, or none that matters. */
static void calls(void) {
  MPI_Datatype holes, slot;
  MPI_Comm comm;
  MPI_Request requests[2];
  MPI_Win win;
  MPI_File file;
  char name[32];
  MPI_Type_vector(2, 1, 2, MPI_INT, &holes);
  MPI_Type_commit(&holes);
  MPI_Type_create_resized(holes, 0, 16, &slot);
  MPI_Type_commit(&slot);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Sendrecv(data, 2, MPI_INT, other, 0, into, 1, holes, other, 0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(data, 1, holes, other, 0, into, 1, holes, other, 0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(data, 2, MPI_INT, other, 0, into, 2, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE);
  MPI_Gather(data, 2, MPI_INT, into, 1, rank == 0 ? slot : MPI_DATATYPE_NULL, 0, comm); /* matters at the root only */
  MPI_Scatter(data, 1, rank == 0 ? slot : MPI_DATATYPE_NULL, into, 2, MPI_INT, 0, comm);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, into, 1, slot, comm);
  MPI_Bcast(data, 1, holes, 0, comm);
  MPI_Bcast(data, 1, MPI_INT, 0, comm);
  MPI_Alltoallw(data, (int[]){1, 1}, (int[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_INT}, into, (int[]){1, 1},
                (int[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_INT}, comm);
  MPI_Alltoallw(data, (int[]){2, 2}, (int[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_INT}, into, (int[]){2, 1},
                (int[]){0, 16}, (MPI_Datatype[]){MPI_INT, holes}, comm);
  MPI_Irecv(into, 1, holes, other, 1, comm, &requests[0]);
  MPI_Isend(data, 1, holes, other, 1, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Win_create(into, sizeof into, 1, MPI_INFO_NULL, comm, &win);
  MPI_Win_fence(0, win);
  MPI_Put(data, 1, holes, other, 0, 1, holes, win);
  MPI_Put(data, 2, MPI_INT, other, 32, 2, MPI_INT, win);
  MPI_Put(data, 2, MPI_INT, other, 64, 1, holes, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  snprintf(name, sizeof name, "types.%d", rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, data, 3, slot, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, 0, into, 6, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Type_free(&slot);
  MPI_Type_free(&holes);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  other = 1 - rank;
  for (int i = 0; i < 64; ++i) data[i] = i;
  shapes();
  calls();
  if (rank == 0) puts("types done");
  MPI_Finalize();
  return 0;
}
