/* SPDX-License-Identifier: Apache-2.0
 * Asks for a better order of the ranks, several times.  What rank r exchanges depends on r alone, and after each call r
 * is the rank in the new communicator.
 *
 *   reorder PATTERN[,PATTERN]... [sub | cart | graph | inter | reset | alltoall | early | late]
 *
 * Patterns, of 100 messages of 8,000 bytes to each partner: pairs: 2k and 2k+1.  halves: r and r + size/2.  ring.
 * silent. Each process prints at each step: "STEP OUTCOME HOST: RANK -> NEW RANK, partners on my host N of M". */
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { messages = 100, numbers = 1000 };

static int partners_of(const char* pattern, int rank, int size, int partners[2]) {
  if (strcmp(pattern, "pairs") == 0) {
    partners[0] = rank ^ 1;
    return partners[0] < size ? 1 : 0;
  }
  if (strcmp(pattern, "halves") == 0) {
    partners[0] = (rank + size / 2) % size;
    return partners[0] != rank ? 1 : 0;
  }
  if (strcmp(pattern, "ring") == 0) {
    partners[0] = (rank + 1) % size;
    partners[1] = (rank + size - 1) % size;
    return 2;
  }
  return 0;
}

static void exchange(MPI_Comm comm, const char* pattern) {
  static double out[numbers], in[2][numbers];
  int rank, size, partners[2];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int n = partners_of(pattern, rank, size, partners);
  for (int i = 0; i < messages; ++i) {
    MPI_Request requests[4];
    for (int p = 0; p < n; ++p) MPI_Irecv(in[p], numbers, MPI_DOUBLE, partners[p], p, comm, &requests[p]);
    /* What goes to the next one arrives from the one before. */
    for (int p = 0; p < n; ++p) MPI_Isend(out, numbers, MPI_DOUBLE, partners[p], n - 1 - p, comm, &requests[n + p]);
    MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
  }
}

/* The same pairs, by a collective on communicators of two, which the caller frees. */
static MPI_Comm exchange_in_collectives(MPI_Comm comm, const char* pattern) {
  static double out[2 * numbers], in[2 * numbers];
  int rank, size;
  MPI_Comm pair;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_split(comm, strcmp(pattern, "pairs") == 0 ? rank / 2 : rank % (size / 2), rank, &pair);
  for (int i = 0; i < messages; ++i) MPI_Alltoall(out, numbers, MPI_DOUBLE, in, numbers, MPI_DOUBLE, pair);
  return pair;
}

static void tell(int step, int outcome, MPI_Comm comm, int before, const char* pattern) {
  char name[64] = "", line[256];
  int rank, size, partners[2], here = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  gethostname(name, sizeof name - 1);
  char (*names)[64] = calloc(size, sizeof *names);
  MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, comm);
  const int n = partners_of(pattern, rank, size, partners);
  for (int p = 0; p < n; ++p) here += strcmp(names[partners[p]], name) == 0;
  snprintf(line, sizeof line, "%d %d %s: %d -> %d, partners on my host %d of %d\n", step, outcome, name, before, rank,
           here, n);
  fputs(line, stdout);
  fflush(stdout);
  free(names);
}

static MPI_Comm communicator(const char* what) {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank, size, both[2] = {0, 0}, periods[2] = {1, 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "sub") == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, -rank, &comm);
  } else if (strcmp(what, "cart") == 0) {
    MPI_Dims_create(size, 2, both);
    MPI_Cart_create(MPI_COMM_WORLD, 2, both, periods, 0, &comm);
  } else if (strcmp(what, "graph") == 0) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, weight = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &comm);
  } else if (strcmp(what, "inter") == 0) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &comm);
    MPI_Comm_free(&half);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  return comm;
}

/* MPI ends a program that calls it before MPI_Init or after MPI_Finalize. */
static void call_without_mpi(void) {
  MPI_Comm world = MPI_COMM_WORLD, made = MPI_COMM_NULL;
  const int outcome = commlens_reorder(&world, &made);
  printf("without MPI: %d%s\n", outcome, made == MPI_COMM_NULL ? "" : ", written");
}

/* The new communicator has the processes and the topology of the old one. */
static void check(MPI_Comm old, MPI_Comm made, int outcome) {
  int same, kinds[2], inter;
  MPI_Comm_compare(old, made, &same);
  MPI_Topo_test(old, &kinds[0]);
  MPI_Topo_test(made, &kinds[1]);
  MPI_Comm_test_inter(old, &inter);
  if (kinds[0] != kinds[1] || same != (outcome == 1 ? MPI_SIMILAR : MPI_CONGRUENT)) printf("wrong communicator\n");
  if (kinds[0] != MPI_CART) return;
  int dims[2][2], periods[2][2], own[2];
  MPI_Cart_get(old, 2, dims[0], periods[0], own);
  MPI_Cart_get(made, 2, dims[1], periods[1], own);
  if (memcmp(dims[0], dims[1], sizeof own) != 0 || memcmp(periods[0], periods[1], sizeof own) != 0)
    printf("wrong grid\n");
}

int main(int argc, char** argv) {
  char patterns[256] = "";
  const char* const what = argc > 2 ? argv[2] : "";
  if (strcmp(what, "early") == 0) call_without_mpi();
  MPI_Init(&argc, &argv);
  strncpy(patterns, argv[1], sizeof patterns - 1);
  MPI_Comm comm = communicator(what);
  int step = 0;
  for (char* pattern = strtok(patterns, ","); comm != MPI_COMM_NULL && pattern != NULL; pattern = strtok(NULL, ",")) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm pair = MPI_COMM_NULL;
    int before;
    MPI_Comm_rank(comm, &before);
    if (strcmp(what, "inter") == 0) {
      printf("%d\n", commlens_reorder(&comm, &made));
      check(comm, made, 0);
    } else {
      if (strcmp(what, "alltoall") == 0) {
        pair = exchange_in_collectives(comm, pattern);
      } else {
        exchange(comm, pattern);
      }
      if (strcmp(what, "reset") == 0) commlens_reset();
      const int outcome = commlens_reorder(&comm, &made);
      check(comm, made, outcome);
      tell(step, outcome, made, before, pattern);
    }
    if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
    MPI_Comm_free(&comm);
    comm = made;
    ++step;
  }
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  MPI_Finalize();
  if (strcmp(what, "late") == 0) call_without_mpi();
  return 0;
}
