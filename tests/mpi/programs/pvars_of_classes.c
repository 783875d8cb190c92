/* SPDX-License-Identifier: Apache-2.0
 * Sets the variables of pvar_library.c, between levels of MPI_Pcontrol as mpiP has them: 0 pauses, 1 resumes, 2 resets,
 * 3 flushes. */
#include <mpi.h>
#include <stdio.h>

void set_pvar(const char* name, int element, double value);
void check_pvars_are_closed(void);

/* What grows begins where the library has it. */
static void grow_to(double n) {
  set_pvar("f_counter", 0, 5000 + n);
  set_pvar("f_narrow", 0, 4294967290.0 + n >= 4294967296.0 ? n - 6 : 4294967290.0 + n);
  for (int i = 0; i < 3; ++i) set_pvar("f_array", i, (i + 1) * (1 + n));
  set_pvar("f_timer", 0, 0.5 + n / 4);
  set_pvar("f_ticks", 0, 8 + n);
}

static void set_all(double n) {
  static const char* const names[] = {"f_level", "f_high", "f_low", "f_percentage", "f_size", "f_generic"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) set_pvar(names[i], 0, n);
  set_pvar("f_state", 0, -n);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  grow_to(100); /* forgotten */
  MPI_Pcontrol(2);
  grow_to(110 + rank);
  set_all(7);
  MPI_Pcontrol(3); /* 10 + rank */
  MPI_Pcontrol(0); /* 0 */
  grow_to(1000 + rank);
  set_all(99); /* nobody looks */
  MPI_Pcontrol(1);
  grow_to(1005 + rank); /* 5, at the end */
  set_all(3);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  check_pvars_are_closed();
  return 0;
}
