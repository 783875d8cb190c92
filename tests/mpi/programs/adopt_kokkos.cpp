// SPDX-License-Identifier: Apache-2.0
// A program of the real Kokkos that says where it is; test_adopt.py knows what it does.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ProfileSection.hpp>
#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  double sum = 0;
  {
    Kokkos::View<double*> x("x", 1000), y("y", 1000);
    Kokkos::Profiling::ProfilingSection section("halo");
    Kokkos::Profiling::pushRegion("main");
    for (int i = 0; i < 3; ++i) {
      Kokkos::Profiling::pushRegion("solve");
      Kokkos::parallel_for("axpy", 1000, KOKKOS_LAMBDA(int k) { y(k) += 2 * x(k) + k; });
      section.start();
      MPI_Barrier(MPI_COMM_WORLD);
      Kokkos::parallel_reduce("dot", 1000, KOKKOS_LAMBDA(int k, double& part) { part += y(k); }, sum);
      section.stop();
      MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      Kokkos::Profiling::popRegion();
    }
    Kokkos::deep_copy(x, y);
    Kokkos::Profiling::popRegion();
  }
  Kokkos::finalize();
  std::printf("sum %.0f\n", sum);
  MPI_Finalize();
}
