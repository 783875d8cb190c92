/* SPDX-License-Identifier: Apache-2.0
 * What Figure 1 of the Open MPI monitoring papers calls, and nothing else of MPI_T: how many messages this rank has
 * sent to each.  Prints them after a ring, in which rank r sends r + 1 messages to the next one, and after a reset. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(const char* what, int rc) {
  if (rc == MPI_SUCCESS) return;
  printf("%s: %d\n", what, rc);
  fflush(stdout);
  MPI_Finalize(); /* all ranks come here; MPI_Abort may cost what they have printed */
  exit(1);
}

static void ring(int times) {
  int rank, size, token = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Request request;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < times + size; ++i) {
    const int sends = i < times + rank, receives = i < times + before;
    if (receives) MPI_Irecv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &request);
    if (sends) MPI_Send(&rank, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    if (receives) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void print(const char* when, int rank, const size_t* counts, int n) {
  char line[1024];
  int used = snprintf(line, sizeof line, "%s %d:", when, rank);
  for (int i = 0; i < n; ++i) used += snprintf(line + used, sizeof line - (size_t)used, " %zu", counts[i]);
  printf("%s\n", line);
  fflush(stdout);
}

int main(int argc, char** argv) {
  int provided, index, count, rank;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(comm, &rank);
  check("init", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  check("index", MPI_T_pvar_get_index("pml_monitoring_messages_count", MPI_T_PVAR_CLASS_SIZE, &index));
  check("session", MPI_T_pvar_session_create(&session));
  check("alloc", MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count));
  size_t* counts = calloc((size_t)count, sizeof *counts);
  check("start", MPI_T_pvar_start(session, handle));
  ring(1);
  check("read", MPI_T_pvar_read(session, handle, counts));
  print("after", rank, counts, count);
  const int reset = MPI_T_pvar_reset(session, handle);
  if (argc < 2) check("reset", reset); /* the library's own variables cannot be reset */
  ring(3);
  check("read", MPI_T_pvar_read(session, handle, counts));
  print("again", rank, counts, count);
  check("stop", MPI_T_pvar_stop(session, handle));
  check("free", MPI_T_pvar_handle_free(session, &handle));
  check("end", MPI_T_pvar_session_free(&session));
  check("finalize", MPI_T_finalize());
  free(counts);
  MPI_Finalize();
  return 0;
}
