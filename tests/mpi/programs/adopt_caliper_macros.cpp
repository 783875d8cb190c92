// SPDX-License-Identifier: Apache-2.0
// What adopt_caliper.cpp does, written with the macros and functions of Caliper's own headers.
#include <caliper/cali.h>
#include <mpi.h>

static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

static void solve() {
  CALI_CXX_MARK_FUNCTION;
  CALI_CXX_MARK_LOOP_BEGIN(sweeps, "sweeps");
  for (int i = 0; i < 4; ++i) {
    CALI_CXX_MARK_LOOP_ITERATION(sweeps, i);
    CALI_CXX_MARK_SCOPE("halo");
    barrier();
  }
  CALI_CXX_MARK_LOOP_END(sweeps);
  barrier();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CALI_MARK_BEGIN("main");
  CALI_MARK_PHASE_BEGIN("first");
  barrier();
  CALI_MARK_PHASE_END("first");

  CALI_MARK_LOOP_BEGIN(steps, "steps");
  const cali_id_t size = cali_create_attribute("size", CALI_TYPE_INT, CALI_ATTR_ASVALUE);
  for (int i = 0; i < 3; ++i) {
    CALI_MARK_ITERATION_BEGIN(steps, i);
    cali_begin_int(size, 10 * i);  // a value: no region, no iteration
    CALI_MARK_COMM_REGION_BEGIN("exchange");
    barrier();
    CALI_MARK_COMM_REGION_END("exchange");
    cali_end(size);
    CALI_MARK_ITERATION_END(steps);
  }
  CALI_MARK_LOOP_END(steps);

  solve();
  const cali_id_t kernel = cali_create_attribute("kernel", CALI_TYPE_STRING, CALI_ATTR_NESTED);
  cali_begin_string_byname("kernel", "axpy");
  barrier();
  cali_end_byname("kernel");
  cali_begin_string(kernel, "dot");
  barrier();
  cali_end(kernel);
  CALI_MARK_END("main");
  MPI_Finalize();
  return 0;
}
