/* SPDX-License-Identifier: Apache-2.0
 * A loop that is only ended from outside: `endless FILE [flush]`.  In each step a reduction in a region and the number
 * of the step as a value; with "flush" the counters are copied now and then.  FILE.<pid> is there when it runs. */
#include <commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int in = 1, out = 0;
  char name[4096];
  commlens_begin("endless");
  MPI_Init(&argc, &argv);
  const commlens_metric_t metric = commlens_metric("step", "1");
  commlens_loop_begin("steps", COMMLENS_LOOP_SUM);
  for (long step = 0;; ++step) {
    commlens_loop_iteration();
    commlens_begin("reduce");
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    commlens_end("reduce");
    commlens_record(metric, (double)step);
    if (step == 10) {
      snprintf(name, sizeof name, "%s.%d", argv[1], (int)getpid());
      FILE* const file = fopen(name, "w");
      fprintf(file, "%d\n", (int)getpid());
      fclose(file);
    }
    if (argc > 2 && step % 500 == 0) commlens_flush();
    usleep(200);
  }
}
