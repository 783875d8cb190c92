/* SPDX-License-Identifier: Apache-2.0
 * Reads through MPI_T how many messages of which size this rank has exchanged with each one.  Rank r sends to the next
 * one r + 1 messages of 0 bytes, two of 3 and one of 4096, in a communicator with reversed ranks.  Prints lines
 * "sent RANK: PEER.BITS=NUMBER ...", in ranks of that communicator. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { bins = 65 };
static MPI_T_pvar_session session;
static MPI_Comm comm;
static int rank, size;

static void check(const char* what, int rc) {
  if (rc == MPI_SUCCESS) return;
  printf("%s: %d\n", what, rc);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_T_pvar_handle started(const char* name) {
  MPI_T_pvar_handle handle;
  int index = -1, count = -1;
  check(name, MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
  check(name, MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count));
  check(name, count == bins * size ? MPI_SUCCESS : count);
  check(name, MPI_T_pvar_start(session, handle));
  return handle;
}

static void print(const char* what, MPI_T_pvar_handle handle) {
  unsigned long* const counts = calloc((size_t)(bins * size), sizeof *counts);
  char line[1024];
  check(what, MPI_T_pvar_read(session, handle, counts));
  int used = snprintf(line, sizeof line, "%s %d:", what, rank);
  for (int i = 0; i < bins * size; ++i) {
    if (counts[i] != 0)
      used += snprintf(line + used, sizeof line - (size_t)used, " %d.%d=%lu", i / bins, i % bins, counts[i]);
  }
  printf("%s\n", line);
  fflush(stdout);
  free(counts);
}

static void exchange(int messages, int from, int bytes) {
  static char sent[4096], received[4096];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request* const requests = calloc((size_t)(messages + from), sizeof *requests);
  for (int i = 0; i < from; ++i) MPI_Irecv(received, bytes, MPI_BYTE, before, 0, comm, &requests[i]);
  for (int i = 0; i < messages; ++i) MPI_Isend(sent, bytes, MPI_BYTE, next, 0, comm, &requests[from + i]);
  MPI_Waitall(messages + from, requests, MPI_STATUSES_IGNORE);
  free(requests);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm);
  MPI_Comm_rank(comm, &rank);
  check("init", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  check("session", MPI_T_pvar_session_create(&session));
  exchange(1, 1, 4096); /* before the start */
  MPI_T_pvar_handle sent = started("commlens_comm_sent_histogram_by_peer");
  MPI_T_pvar_handle received = started("commlens_comm_received_histogram_by_peer");
  exchange(rank + 1, (rank + size - 1) % size + 1, 0);
  exchange(2, 2, 3);
  exchange(1, 1, 4096);
  print("sent", sent);
  print("received", received);
  check("end", MPI_T_pvar_session_free(&session));
  check("finalize", MPI_T_finalize());
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
