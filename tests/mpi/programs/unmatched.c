/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that do not belong to the innermost region, or to none, and an iteration outside all loops. */
#include <commlens/commlens.h>
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  commlens_begin("outer");
  commlens_begin("inner");
  commlens_end("outer");
  commlens_end_region(commlens_region("never"));
  commlens_loop_iteration();
  MPI_Finalize();
  return 0;
}
