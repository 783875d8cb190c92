// SPDX-License-Identifier: Apache-2.0
// What annotated.cpp does, marked with the names of TinyProf; a barrier follows the loop.
#include <mpi.h>

#include <events.hpp>

static void exchange() {
  Events whole("exchange", 1);
  Events comm("comm", 1, "COMM");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void run(int rank) {
  Events whole("main", 1, "COMP");
  for (int i = 0; i < 3; ++i) {
    Events step("steps", 1, 1, i);
    exchange();
    Events sweep("sweeps", 1, 2, i);
    if (rank % 2 == 0) continue;
    Events update("update", 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Profiler::start("tinyprof", 0, rank, ranks, 2, 1, 1);
  for (int execution = 0; execution < 2; ++execution) {
    Profiler::set_context("", execution);
    run(rank);
  }
  Profiler::dump();
  MPI_Finalize();
}
