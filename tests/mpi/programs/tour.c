/* SPDX-License-Identifier: Apache-2.0
 * A walk through MPI on 4 ranks.  tour.cpp, tour.F90 (three bindings) and tour.py make the same calls with the
 * same arguments, so that all profiles must be equal: change one, change all. */
#include <mpi.h>
#include <stdio.h>

static int rank, size, right, left, half_rank, partner;
static int ints[64], more[64];
static double reals[16], sums[16];
static MPI_Comm half;

/* Listing 1 of the paper */
static void listing_1(void) {
  for (int i = 0; i < 30; ++i) MPI_Allreduce(ints, more, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2 ? 1 : 0, rank, &half);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(reals, sums, 2, MPI_DOUBLE, MPI_SUM, half);
  MPI_Comm_rank(half, &half_rank);
  partner = 1 - half_rank;
}

static void blocking(void) {
  MPI_Status status;
  if (rank % 2 == 0) {
    MPI_Send(ints, 5, MPI_INT, right, 3, MPI_COMM_WORLD);
    MPI_Recv(more, 64, MPI_INT, left, 4, MPI_COMM_WORLD, &status);
    MPI_Ssend(ints, 2, MPI_INT, right, 5, MPI_COMM_WORLD);
  } else {
    MPI_Recv(more, 64, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(ints, 7, MPI_INT, right, 4, MPI_COMM_WORLD);
    MPI_Recv(more, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  int const above = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  MPI_Sendrecv(reals, 3, MPI_DOUBLE, above, 6, sums, 16, MPI_DOUBLE, below, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(ints, 9, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD);
  MPI_Recv(more, 9, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void nonblocking(void) {
  MPI_Status status, statuses[8];
  MPI_Request requests[8];
  for (int i = 0; i < 4; ++i) {
    MPI_Irecv(more + 8 * i, 8, MPI_INT, partner, i, half, &requests[i]);
    MPI_Isend(ints, i + 1, MPI_INT, partner, i, half, &requests[4 + i]);
  }
  MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  MPI_Irecv(more, 8, MPI_INT, partner, 8, half, &requests[0]);
  MPI_Isend(ints, 6, MPI_INT, partner, 8, half, &requests[1]);
  MPI_Wait(&requests[0], &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Irecv(more, 8, MPI_INT, partner, 9, half, &requests[0]);
  MPI_Irecv(sums, 8, MPI_DOUBLE, left, 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(ints, 3, MPI_INT, partner, 9, half, &requests[2]);
  MPI_Isend(reals, 4, MPI_DOUBLE, right, 9, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, statuses);
  MPI_Iallreduce(ints, more, 5, MPI_INT, MPI_MAX, half, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

/* One buffer is both the send and the receive buffer. */
static void in_place(void) {
  MPI_Allreduce(MPI_IN_PLACE, more, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    MPI_Gather(MPI_IN_PLACE, 2, MPI_INT, more, 2, MPI_INT, 0, MPI_COMM_WORLD);
  else
    MPI_Gather(ints, 2, MPI_INT, NULL, 2, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 2, MPI_INT, more, 2, MPI_INT, MPI_COMM_WORLD);
  if (rank == 1)
    MPI_Reduce(MPI_IN_PLACE, sums, 6, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
  else
    MPI_Reduce(reals, NULL, 6, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
  if (rank == 0)
    MPI_Scatter(ints, 4, MPI_INT, MPI_IN_PLACE, 4, MPI_INT, 0, MPI_COMM_WORLD);
  else
    MPI_Scatter(NULL, 4, MPI_INT, more, 4, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, 4, MPI_INT, more, 4, MPI_INT, MPI_COMM_WORLD);
}

static void blocks_of_different_sizes(void) {
  int const counts[4] = {1, 2, 3, 4}, offsets[4] = {0, 4, 8, 12}, mine[4] = {rank + 1, rank + 1, rank + 1, rank + 1};
  MPI_Gatherv(ints, rank + 1, MPI_INT, more, counts, offsets, MPI_INT, 2, MPI_COMM_WORLD);
  MPI_Alltoallv(ints, counts, offsets, MPI_INT, more, mine, offsets, MPI_INT, MPI_COMM_WORLD);
}

static void more_communicators(void) {
  MPI_Comm copy, grid;
  MPI_Comm_dup(half, &copy);
  MPI_Comm_set_name(copy, "copy of the half");
  MPI_Bcast(reals, 10, MPI_DOUBLE, 1, copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  int const dims[2] = {2, 2}, periodic[2] = {1, 0};
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &grid);
  int source, destination;
  MPI_Cart_shift(grid, 1, 1, &source, &destination);
  MPI_Sendrecv(ints, 4, MPI_INT, destination, 1, more, 4, MPI_INT, source, 1, grid, MPI_STATUS_IGNORE);
  MPI_Neighbor_allgather(ints, 2, MPI_INT, more, 2, MPI_INT, grid);
  MPI_Comm_free(&grid);
  MPI_Barrier(MPI_COMM_SELF);
}

static void one_sided(void) {
  MPI_Win window;
  MPI_Win_create(more, sizeof more, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(ints, 2, MPI_INT, right, 0, 2, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void shared_file(void) {
  MPI_File file;
  MPI_File_open(half, rank < size / 2 ? "tour.low" : "tour.high", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                &file);
  MPI_File_write_at_all(file, 16 * half_rank, ints, 4, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_File_read_at(file, 16 * half_rank, more, 3, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 64; ++i) ints[i] = more[i] = rank + i;
  for (int i = 0; i < 16; ++i) reals[i] = sums[i] = rank;
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;

  listing_1();
  blocking();
  nonblocking();
  in_place();
  blocks_of_different_sizes();
  more_communicators();
  one_sided();
  shared_file();
  MPI_Comm_free(&half);

  if (rank == 0) printf("done %d\n", more[0] + more[2]);
  MPI_Finalize();
  return 0;
}
