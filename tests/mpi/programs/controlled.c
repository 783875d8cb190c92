/* SPDX-License-Identifier: Apache-2.0
 * Regions of which some do not count: `controlled HOW`; "pause" and "reset" say so themselves, "plain" does not. */
#include <commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void barriers(int n) {
  for (int i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const char* const how = argv[1];
  const int pauses = strcmp(how, "pause") == 0, resets = strcmp(how, "reset") == 0;
  int in = 1, out = 0, rank;
  MPI_Request request;
  const commlens_metric_t metric = commlens_metric("value", "");
  commlens_begin("whole");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(how, "resume") == 0) commlens_resume();
  barriers(1);
  commlens_begin("solve");
  barriers(2);
  commlens_record(metric, 1);
  MPI_Irecv(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  commlens_begin("exchange");
  barriers(4);
  if (pauses) commlens_pause();
  commlens_begin("inner");
  barriers(8);
  commlens_record(metric, 10);
  commlens_end("inner");
  if (pauses && commlens_active() != 0) return 1;
  if (pauses) commlens_resume();
  barriers(16);
  commlens_end("exchange");
  if (resets) commlens_reset();
  MPI_Send(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  commlens_record(metric, 100);
  commlens_end("solve");
  commlens_begin("output");
  barriers(32);
  commlens_end("output");
  commlens_end("whole");
  barriers(64);
  MPI_Finalize();
  printf("%d\n", out);
  return 0;
}
