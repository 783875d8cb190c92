/* SPDX-License-Identifier: Apache-2.0
 * Messages of more than 2^31 bytes on one rank, in little memory: a collective of one process copies nothing, and the
 * message that is copied lies in a few pages that are mapped again and again. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SELF MPI_COMM_SELF
enum { MIB = 1 << 20, PIECE = 64 * MIB, PIECES = 33 };

static char* wide(void) {
  int const file = memfd_create("large", 0);
  char* const at = mmap(NULL, (size_t)PIECE * PIECES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (file < 0 || ftruncate(file, PIECE) != 0 || at == MAP_FAILED) abort();
  for (size_t i = 0; i < PIECES; ++i)
    if (mmap(at + i * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) abort();
  close(file);
  return at;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char* const from = wide();
  char* const to = wide();
  MPI_Datatype mib, gib, exbi;
  MPI_Request request;
  MPI_Status status;
  MPI_Count elements;
  MPI_Type_contiguous(MIB, MPI_BYTE, &mib);
  MPI_Type_commit(&mib);
  MPI_Type_contiguous(1024, mib, &gib);
  MPI_Type_commit(&gib);
  MPI_Type_contiguous(1 << 30, gib, &exbi);
  MPI_Type_commit(&exbi);

  /* 33 * 64 MiB = 2,214,592,512 bytes, which no int holds */
  from[0] = 7;
  from[PIECE - 1] = 9;
  MPI_Irecv(to, 64 * PIECES, mib, 0, 0, SELF, &request);
  MPI_Send(from, 64 * PIECES, mib, 0, 0, SELF);
  MPI_Wait(&request, &status);
  MPI_Get_elements_x(&status, MPI_BYTE, &elements);
  printf("%lld %d %d\n", (long long)elements, to[0], to[PIECE - 1]);

  MPI_Bcast(from, 5, gib, 0, SELF);                                      /* 5 * 2^30 */
  MPI_Allreduce(MPI_IN_PLACE, from, 2147483647, MPI_INT, MPI_SUM, SELF); /* 4 * (2^31 - 1) */
  MPI_Bcast(from, 1, exbi, 0, SELF);                                     /* 2^60 */
  MPI_Send(from, 3, gib, MPI_PROC_NULL, 0, SELF);                        /* nothing goes nowhere, of size 3 * 2^30 */
  MPI_Recv(to, 3, gib, MPI_PROC_NULL, 0, SELF, &status);
#if MPI_VERSION >= 4
  MPI_Count const five = 5000000000;
  MPI_Irecv_c(to, (MPI_Count)PIECE * PIECES, MPI_BYTE, 0, 0, SELF, &request);
  MPI_Send_c(from, (MPI_Count)PIECE * PIECES, MPI_BYTE, 0, 0, SELF);
  MPI_Wait(&request, &status);
  MPI_Get_count_c(&status, MPI_BYTE, &elements);
  printf("%lld\n", (long long)elements);
  MPI_Bcast_c(from, five, MPI_BYTE, 0, SELF);
  MPI_Reduce_c(MPI_IN_PLACE, from, five, MPI_INT, MPI_SUM, 0, SELF);
  MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_BYTE, from, (MPI_Count[]){five}, (MPI_Aint[]){0}, MPI_BYTE, SELF);
  MPI_Send_c(from, five, MPI_DOUBLE, MPI_PROC_NULL, 0, SELF);
#endif
  MPI_Type_free(&mib);
  MPI_Type_free(&gib);
  MPI_Type_free(&exbi);
  MPI_Finalize();
  return 0;
}
