/* SPDX-License-Identifier: Apache-2.0
 *
 * One process sends to itself with datatypes of every layout; tests/mpi/test_layouts.py says which leave gaps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static char out[4096], in[4096];

/* Sends `count` elements in one call of a size that tells the datatype: MPI_Send counts in the bin of its bytes. */
static void with(MPI_Datatype datatype, int count, int commit) {
  if (commit) MPI_Type_commit(&datatype);
  MPI_Request request;
  MPI_Irecv(in + 1024, 1024, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
  MPI_Send(out + 1024, count, datatype, 0, 0, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (commit) MPI_Type_free(&datatype);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Datatype t;
  with(MPI_BYTE, 1, 0); /* 1 byte: basic */
  MPI_Type_contiguous(2, MPI_BYTE, &t);
  with(t, 1, 1); /* 2 bytes: contiguous */
  MPI_Type_vector(4, 1, 2, MPI_BYTE, &t);
  with(t, 1, 1); /* 4 bytes: gaps */
  MPI_Type_create_resized(MPI_LONG_LONG, 0, 32, &t);
  with(t, 1, 1); /* 8 bytes: one element has no gap, whatever its extent */
  MPI_Type_create_resized(MPI_LONG_LONG, 0, 32, &t);
  with(t, 2, 1); /* 16 bytes: two have one between them */
  MPI_Type_create_resized(MPI_LONG_LONG, 0, -8, &t);
  with(t, 4, 1); /* 32 bytes: one before the other, downwards */
  MPI_Type_contiguous(0, MPI_INT, &t);
  with(t, 5, 1);            /* 0 bytes: nothing has no gaps */
  with(MPI_LONG_INT, 1, 0); /* 12 bytes, bin of 8: 8 and 4 side by side */
  MPI_Type_vector(1, 64, 99, MPI_BYTE, &t);
  with(t, 1, 1); /* 64 bytes: a vector of one block */
  int lengths[2] = {64, 64}, places[2] = {64, 0};
  MPI_Type_indexed(2, lengths, places, MPI_BYTE, &t);
  with(t, 1, 1); /* 128 bytes: in another order, without gaps */

  /* The layout goes with the handle, and the handle may come back for another datatype. */
  for (int i = 0; i < 100; ++i) {
    if (i % 2) {
      MPI_Type_vector(256, 1, 2, MPI_BYTE, &t);
    } else {
      MPI_Type_contiguous(256, MPI_BYTE, &t);
    }
    with(t, 1, 1); /* 256 bytes: every second one with gaps */
  }

  /* Either side of a collective. */
  MPI_Type_vector(512, 1, 2, MPI_BYTE, &t);
  MPI_Type_commit(&t);
  MPI_Allgather(out, 512, MPI_BYTE, in, 1, t, MPI_COMM_SELF);
  MPI_Allgather(out, 1, t, in, 512, MPI_BYTE, MPI_COMM_SELF);
  MPI_Allgather(out, 512, MPI_BYTE, in, 512, MPI_BYTE, MPI_COMM_SELF);
  MPI_Gatherv(out, 512, MPI_BYTE, in, (int[]){1}, (int[]){0}, t, 0, MPI_COMM_SELF);

  /* Requests that are started later. */
  MPI_Request requests[2];
  MPI_Send_init(out, 1, t, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Recv_init(in, 512, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Type_free(&t);
  MPI_Finalize();
  return 0;
}
