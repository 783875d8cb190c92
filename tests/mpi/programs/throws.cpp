// SPDX-License-Identifier: Apache-2.0
// An error handler that throws: the exception flies through the MPI library, and through whoever wraps it.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

static void thrower(MPI_Comm*, int* code, ...) {
  int kind = 0;
  PMPI_Error_class(*code, &kind);
  throw std::runtime_error(kind == MPI_ERR_RANK ? "no such rank" : "another error");
}

// Deeper in the stack than the call that threw: what forgets to tidy up takes this for a call from inside that one.
__attribute__((noinline)) static void deeper(int levels, MPI_Comm comm) {
  char volatile room[256] = {};
  if (levels > room[0]) {
    deeper(levels - 1, comm);
  } else {
    MPI_Barrier(comm);
  }
  room[1] = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(thrower, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  int rank, one = 1, sum = 0, caught = 0;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < 5; ++i) {
    try {
      MPI_Send(&one, 1, MPI_INT, 99, 0, comm);
    } catch (std::runtime_error const& error) {
      ++caught;
      if (rank == 0 && i == 0) std::puts(error.what());
    }
    deeper(5, comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  }
  if (rank == 0) std::printf("caught %d, sum %d\n", caught, sum);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
