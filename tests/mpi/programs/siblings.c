/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators that one call made on all ranks, and what they do not have in common. */
#include <mpi.h>
#include <stdio.h>

static void use(MPI_Comm comm, int times) {
  for (int i = 0; i < times; ++i) MPI_Barrier(comm);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  /* Each has a name of its own, all have the same one, and only some have one. */
  MPI_Comm named[3];
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &named[0]);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &named[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &named[2]);
  snprintf(name, sizeof name, "row %d", rank / 2);
  MPI_Comm_set_name(named[0], name);
  MPI_Comm_set_name(named[1], "row");
  if (rank < 2) MPI_Comm_set_name(named[2], "first row");
  for (int i = 0; i < 3; ++i) use(named[i], 1 + i);

  /* Grids of one size and different shapes. */
  MPI_Comm half, grid;
  const int first = rank < size / 2, periods[2] = {0, 0};
  const int dims[2] = {first ? size / 2 : 1, first ? 1 : size / 2};
  MPI_Comm_split(MPI_COMM_WORLD, first, rank, &half);
  MPI_Cart_create(half, 2, dims, periods, 0, &grid);
  use(grid, 4);

  /* The same processes, told apart by nothing but tags. */
  MPI_Group all;
  MPI_Comm tagged[2];
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 1, &tagged[0]);
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 2, &tagged[1]);
  use(tagged[0], 5);
  use(tagged[1], 6);

  /* Two communicators, made by two calls on rank 0 and by one on the others. */
  MPI_Comm copies[2];
  if (rank == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &copies[1]);
  } else {
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
  }
  use(copies[0], 7);
  use(copies[1], 70);
  MPI_Comm children[2];
  for (int i = 0; i < 2; ++i) MPI_Comm_split(copies[i], rank / 2, rank, &children[i]);
  use(children[0], 8);
  use(children[1], 80);

  /* Requests of several communicators that are completed together. */
  MPI_Request requests[2];
  MPI_Ibarrier(named[0], &requests[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

  MPI_Group_free(&all);
  MPI_Finalize();
  return 0;
}
