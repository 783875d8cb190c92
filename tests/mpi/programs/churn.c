/* SPDX-License-Identifier: Apache-2.0
 * "made ROUNDS": on 4 ranks; ROUNDS communicators of each kind are made, used and freed: copies and all in reverse
 * order, both of a parent of their own, of a group with a tag of their own each, of two smaller groups in turns, and
 * between the even and the odd ranks with a tag of their own each.  Each has one barrier on all its ranks, and one
 * message from its rank 0 to its last, or to the last of the other side.
 *
 * "memory COMMS": one rank; prints by how many KiB it grows in the second half of that many copies, and as many of a
 * group with different tags. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

static void use_and_free(MPI_Comm* made, int is_inter) {
  int rank, last;
  char byte = 1;
  MPI_Comm_rank(*made, &rank);
  is_inter ? MPI_Comm_remote_size(*made, &last) : MPI_Comm_size(*made, &last);
  --last;
  MPI_Barrier(*made);
  MPI_Request request = MPI_REQUEST_NULL;
  char in;
  if (rank == last) MPI_Irecv(&in, 1, MPI_CHAR, 0, 1, *made, &request);
  if (rank == 0) MPI_Send(&byte, 1, MPI_CHAR, last, 1, *made);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(made);
}

static void make(int rounds) {
  int rank;
  MPI_Comm copies, reversed, between, half, made;
  MPI_Group world, all, some;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &copies);
  MPI_Comm_dup(MPI_COMM_WORLD, &reversed);
  MPI_Comm_dup(MPI_COMM_WORLD, &between);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int backwards[RANKS] = {3, 2, 1, 0};
  MPI_Group_incl(world, RANKS, backwards, &all);
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm_dup(copies, &made);
    use_and_free(&made, 0);
    MPI_Comm_split(reversed, 0, -rank, &made);
    use_and_free(&made, 0);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, i, &made);
    use_and_free(&made, 0);
    const int two[2] = {i % 2, 2 + i % 2};
    MPI_Group_incl(world, 2, two, &some);
    if (rank % 2 == i % 2) {
      MPI_Comm_create_group(MPI_COMM_WORLD, some, i, &made);
      use_and_free(&made, 0);
    }
    MPI_Group_free(&some);
    MPI_Intercomm_create(half, 0, between, 1 - rank % 2, i, &made);
    use_and_free(&made, 1);
  }
  MPI_Comm* const kept[] = {&copies, &reversed, &between, &half};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i) MPI_Comm_free(kept[i]);
  MPI_Group_free(&all);
  MPI_Group_free(&world);
}

static long resident(void) {
  long pages = 0, all = 0;
  FILE* const in = fopen("/proc/self/statm", "r");
  if (in != NULL && fscanf(in, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (in != NULL) fclose(in);
  return 4 * pages;
}

static void grow(int comms) {
  MPI_Comm made;
  MPI_Group all;
  long at_first = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (int i = 0; i < comms; ++i) {
    if (i == comms / 2) at_first = resident();
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    use_and_free(&made, 0);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, i % 30000, &made);
    use_and_free(&made, 0);
  }
  printf("grown %ld\n", resident() - at_first);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc == 3 && strcmp(argv[1], "made") == 0) make(atoi(argv[2]));
  if (argc == 3 && strcmp(argv[1], "memory") == 0) grow(atoi(argv[2]));
  MPI_Finalize();
  return 0;
}
