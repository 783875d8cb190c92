// SPDX-License-Identifier: Apache-2.0
// What annotated.c does, by scopes; an exception leaves one of them.
#include <mpi.h>

#include <commlens/commlens.hpp>

static void exchange() {
  const commlens::region region("exchange");
  const commlens::region comm("comm");
  MPI_Barrier(MPI_COMM_WORLD);
  throw 1;
}

static void run(int rank) {
  static const commlens::metric cells("cells", "1");
  COMMLENS_REGION("main");
  commlens::tag("kind", "COMP");
  const commlens::loop steps("steps", commlens::each);
  for (int i = 0; i < 3; ++i) {
    steps.iteration();
    try {
      exchange();
    } catch (int) {
    }
    if (rank % 2 == 0) continue;
    const commlens::region update("update");
    cells.record(10 * i + rank);
  }
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int execution = 0; execution < 2; ++execution) run(rank);
  MPI_Finalize();
}
