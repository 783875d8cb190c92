/* SPDX-License-Identifier: Apache-2.0
 * OpenMP: four parallel regions, one of them with a loop, one nested in another, one with a team of one thread;
 * barriers of the main thread inside and outside. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

static int sum;

static void nested(void) {
#pragma omp parallel num_threads(2)
  {
#pragma omp master
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void with_loop(void) {
#pragma omp parallel num_threads(3)
  {
#pragma omp for schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 100; ++i) sum += i;
#pragma omp master
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A team of one. */
static void alone(void) {
#pragma omp parallel if (0)
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) with_loop();
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  {
#pragma omp master
    {
      MPI_Barrier(MPI_COMM_WORLD);
      for (int i = 0; i < 3; ++i) nested();
    }
  }
  for (int i = 0; i < 2; ++i) alone();
  MPI_Barrier(MPI_COMM_WORLD);
  printf("sum %d\n", sum);
  MPI_Finalize();
  return 0;
}
