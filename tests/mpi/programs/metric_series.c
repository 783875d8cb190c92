/* SPDX-License-Identifier: Apache-2.0
 * Each rank records `residual` 100 times in the iterations of a loop, 1000 * rank + step, and `memory` five times
 * outside of it.  With an argument, all then kill themselves. */
#include <mpi.h>
#include <signal.h>

#include <commlens/commlens.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const commlens_metric_t residual = commlens_metric("residual", "1"), memory = commlens_metric("memory", "MiB");
  commlens_loop_begin("steps", COMMLENS_LOOP_EACH);
  for (int step = 0; step < 100; ++step) {
    commlens_loop_iteration();
    commlens_record(residual, 1000.0 * rank + step);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  commlens_loop_end("steps");
  for (int i = 0; i < 5; ++i) commlens_record(memory, i);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
