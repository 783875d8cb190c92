/* SPDX-License-Identifier: Apache-2.0
 * MPI-IO on 2 ranks, in the working directory: what is read short, what fails, and files that outlive the
 * communicator they were opened on. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
static int rank, data[64], into[64];
static MPI_Status status;

static void check(int code) {
  int class;
  MPI_Error_class(code, &class);
  printf("rank %d: %s\n", rank, class == MPI_SUCCESS ? "accepted" : "refused");
}

static void counted(void) {
  int n;
  MPI_Get_count(&status, MPI_INT, &n);
  printf("rank %d: %d\n", rank, n);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  MPI_File file;
  MPI_Request requests[2];
  MPI_Datatype every_other;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  for (int i = 0; i < 64; ++i) data[i] = 100 * rank + i;

  MPI_Comm_dup(WORLD, &comm);
  MPI_File_open(comm, "files.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_Comm_free(&comm);                                           /* the file keeps it */
  MPI_File_write_at(file, 40 * rank, data, 10, MPI_INT, &status); /* 80 bytes in all */
  MPI_File_sync(file);
  MPI_Barrier(WORLD);
  MPI_File_sync(file);
  MPI_File_read_at(file, 60, into, 10, MPI_INT, &status); /* 5 are left */
  counted();
  MPI_File_iread_at(file, 0, into, 10, MPI_INT, &requests[0]); /* at the end of a file Open MPI 4.1 waits for ever */
  MPI_File_iread_at(file, 40, into, 9, MPI_INT, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_File_seek(file, 64, MPI_SEEK_SET);
  MPI_File_read(file, into, 10, MPI_INT, MPI_STATUS_IGNORE); /* 4 are left */
  MPI_File_seek(file, 40, MPI_SEEK_SET);
  MPI_File_read_all_begin(file, into, 10, MPI_INT);
  MPI_File_read_all_end(file, into, &status);
  counted();

  /* a view with holes: what counts is what is asked for, not where it lies */
  MPI_Type_create_resized(MPI_INT, 0, 8, &every_other);
  MPI_Type_commit(&every_other);
  MPI_File_set_view(file, 4 * rank, MPI_INT, every_other, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, data, 6, MPI_INT, &status);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all(file, into, 6, MPI_INT, &status);
  printf("rank %d: %d\n", rank, into[5]);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);

  /* the shared pointer */
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_write_shared(file, data, 3, MPI_INT, &status);
  MPI_Barrier(WORLD);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_read_ordered(file, into, 2, MPI_INT, &status);
  MPI_File_write_ordered(file, data, 4, MPI_INT, &status);
  MPI_File_close(&file);

  /* what fails: counted, without bytes */
  check(MPI_File_open(WORLD, "no/such/folder", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_File_open(WORLD, "files.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  check(MPI_File_write_at(file, 0, data, 8, MPI_INT, &status));
  check(MPI_File_read_at(file, -8, into, 8, MPI_INT, &status));
  check(MPI_File_read_at(file, 0, into, 8, MPI_INT, &status));
  MPI_File_close(&file);
  MPI_Barrier(WORLD);
  if (rank == 0) check(MPI_File_delete("files.dat", MPI_INFO_NULL));
  if (rank == 0) check(MPI_File_delete("files.dat", MPI_INFO_NULL));
  MPI_Finalize();
  return 0;
}
