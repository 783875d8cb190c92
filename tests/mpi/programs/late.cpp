// SPDX-License-Identifier: Apache-2.0
// MPI_Finalize at the very end: in the destructor of a global object, or with -DLIBRARY in that of a shared library.
#include <mpi.h>

#include <cstdio>

#ifdef LIBRARY
extern "C" void begin_mpi(int* argc, char*** argv) { MPI_Init(argc, argv); }
__attribute__((destructor)) static void end_mpi() { MPI_Finalize(); }
#else
extern "C" void begin_mpi(int* argc, char*** argv);
#ifdef GLOBAL
namespace {
struct Environment {
  ~Environment() { MPI_Finalize(); }
} environment;
}  // namespace
extern "C" void begin_mpi(int* argc, char*** argv) { MPI_Init(argc, argv); }
#endif

int main(int argc, char** argv) {
  begin_mpi(&argc, &argv);
  int rank, one = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 7; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("late %d\n", sum);
}
#endif
