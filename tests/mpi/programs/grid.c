/* SPDX-License-Identifier: Apache-2.0
 * A transposing transform on a grid of processes with row and column communicators, in time steps.  The same calls with
 * and without -DANNOTATED. */
#include <mpi.h>
#include <stdlib.h>

#ifdef ANNOTATED
#include "commlens.h"
#define BEGIN(name) commlens_begin(name)
#define END(name) commlens_end(name)
#define STEPS_BEGIN() commlens_loop_begin("steps", COMMLENS_LOOP_EACH)
#define STEP() commlens_loop_iteration()
#define STEPS_END() commlens_loop_end("steps")
#else
#define BEGIN(name)
#define END(name)
#define STEPS_BEGIN()
#define STEP()
#define STEPS_END()
#endif

enum { block = 64, steps = 5 };

static void transpose(MPI_Comm comm, const char* name) {
  int size;
  MPI_Comm_size(comm, &size);
  double* const from = calloc((size_t)size * block, sizeof *from);
  double* const to = calloc((size_t)size * block, sizeof *to);
  BEGIN("transpose");
  BEGIN(name);
  MPI_Alltoall(from, block, MPI_DOUBLE, to, block, MPI_DOUBLE, comm);
  END(name);
  END("transpose");
  free(from);
  free(to);
}

static void halo(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  double out[8] = {0}, in[8];
  MPI_Request requests[2];
  BEGIN("halo");
  MPI_Irecv(in, 8, MPI_DOUBLE, (rank + size - 1) % size, 1, comm, &requests[0]);
  MPI_Isend(out, 8, MPI_DOUBLE, (rank + 1) % size, 1, comm, &requests[1]);
  BEGIN("wait");
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  END("wait");
  END("halo");
}

int main(int argc, char** argv) {
  BEGIN("program");
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm row, column;
  BEGIN("setup");
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
  END("setup");
  STEPS_BEGIN();
  for (int i = 0; i < steps; ++i) {
    STEP();
    transpose(row, "rows");
    transpose(column, "columns");
    halo(column);
    if (i % 2 == 0) {
      double sum = 0, all;
      MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
  }
  STEPS_END();
  MPI_Comm_free(&row);
  MPI_Comm_free(&column);
  MPI_Finalize();
  END("program");
  return 0;
}
