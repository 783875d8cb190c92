/* SPDX-License-Identifier: Apache-2.0
 * The virtual ranks of the scale laboratory, as a real program: duplicates of MPI_COMM_WORLD, and five procedures in
 * each communicator that talk to nobody.  With REGIONS, also a tree of as many regions, of which each has up to four
 * others in it, and is begun ten times.
 *
 *   pattern DUPLICATES [REGIONS] */
#ifdef WITH_REGIONS /* then the program is linked with libcommlens-api */
#include <commlens/commlens.h>
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void begin_regions(int first, int regions) {
#ifdef WITH_REGIONS
  char name[40];
  snprintf(name, sizeof name, "region_of_the_program_%d", first);
  for (int time = 0; time < (first <= 4 ? 10 : 1); ++time) {
    commlens_begin(name);
    for (int child = 4 * first + 1; child <= 4 * first + 4 && child <= regions; ++child) begin_regions(child, regions);
    commlens_end(name);
  }
#else
  (void)first, (void)regions;
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int duplicates = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Comm* comms = malloc((size_t)(duplicates + 1) * sizeof(MPI_Comm));
  comms[0] = MPI_COMM_WORLD;
  for (int i = 1; i <= duplicates; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  double number = rank, other;
  for (int i = 0; i <= duplicates; ++i) {
    int flag;
    for (int call = 0; call < 100; ++call) {
      MPI_Send(&number, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comms[i]);
      MPI_Recv(&other, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comms[i], MPI_STATUS_IGNORE);
      MPI_Sendrecv(&number, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, &other, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comms[i],
                   MPI_STATUS_IGNORE);
      MPI_Probe(MPI_PROC_NULL, 0, comms[i], MPI_STATUS_IGNORE);
      MPI_Iprobe(MPI_PROC_NULL, 0, comms[i], &flag, MPI_STATUS_IGNORE);
    }
  }
  for (int root = 1; argc > 2 && root <= 4 && root <= atoi(argv[2]); ++root) begin_regions(root, atoi(argv[2]));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  free(comms);
  return 0;
}
