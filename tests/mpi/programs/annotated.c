/* SPDX-License-Identifier: Apache-2.0
 * Two executions of three iterations; `update` on odd ranks only.  The same in annotated.cpp, .F90, 77.F and .py. */
#include <commlens/commlens.h>
#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  commlens_metric_t const cells = commlens_metric("cells", "1");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int execution = 0; execution < 2; ++execution) {
    commlens_begin("main");
    commlens_tag("kind", "COMP");
    commlens_loop_begin("steps", COMMLENS_LOOP_EACH);
    for (int i = 0; i < 3; ++i) {
      commlens_loop_iteration();
      commlens_begin("exchange");
      commlens_begin("comm");
      MPI_Barrier(MPI_COMM_WORLD);
      commlens_end("comm");
      commlens_end("exchange");
      if (rank % 2 == 1) {
        commlens_begin("update");
        commlens_record(cells, 10 * i + rank);
        commlens_end("update");
      }
    }
    commlens_loop_end("steps");
    commlens_end("main");
  }
  MPI_Finalize();
  return 0;
}
