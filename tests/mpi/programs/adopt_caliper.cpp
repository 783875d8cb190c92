// SPDX-License-Identifier: Apache-2.0
// A program that says where it is by Caliper: what its macros for C and C++ expand to; test_adopt.py knows what it
// does.
#include "adopt_caliper.h"

#include <mpi.h>

static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

static void solve() {
  const cali::Function function("solve");
  cali::Loop loop("sweeps");
  for (int i = 0; i < 4; ++i) {
    const cali::Loop::Iteration iteration = loop.iteration(i);
    const cali::ScopeAnnotation scope("halo");
    barrier();
  }
  loop.end();
  barrier();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  cali_begin_region("main");
  cali_begin_phase("first");
  barrier();
  cali_end_phase("first");

  cali_begin_string(cali_loop_attr_id, "steps");
  const cali_id_t steps = cali_make_loop_iteration_attribute("steps");
  const cali_id_t size = cali_create_attribute("size", 2, 1);
  for (int i = 0; i < 3; ++i) {
    cali_begin_int(steps, i);
    cali_begin_int(size, 10 * i);  // a value: no region, no iteration
    cali_begin_comm_region("exchange");
    barrier();
    cali_end_comm_region("exchange");
    cali_end(size);
    cali_end(steps);
  }
  cali_end(cali_loop_attr_id);

  solve();
  const cali_id_t kernel = cali_create_attribute("kernel", 4, 256), mode = cali_create_attribute("mode", 4, 0);
  cali_begin_string(mode, "fast");  // a value
  cali_begin_string_byname("kernel", "axpy");
  barrier();
  cali_end_byname("kernel");
  cali_begin_string(kernel, "dot");
  barrier();
  cali_safe_end_string(kernel, "dot");
  cali_end(mode);
  cali_end_region("main");
  cali_end_region("main");  // wrong: Caliper sees that, commlens passes it by
  MPI_Finalize();
  return 0;
}
