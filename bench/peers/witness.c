/* SPDX-License-Identifier: Apache-2.0
 *
 * A witness that shares nothing with any profiler: adds up what each call of the programs of bench/apps says that it
 * moves, by procedure and communicator, and writes it to the file WITNESS.RANK in MPI_Finalize.  A line is
 *
 *     PROCEDURE MEMBERS#NUMBER SIZE CALLS MESSAGE SENT RECEIVED
 *
 * MEMBERS are ranks of MPI_COMM_WORLD; NUMBER tells communicators of the same members apart.  MESSAGE is the count of
 * one block times the size of the datatype. What a non-blocking receive receives is taken to be what it has room for.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCEDURES = 15, COMMS = 4096, ROOM = 128 };

static const char* const names[PROCEDURES] = {"Send",     "Recv",      "Isend",     "Irecv",  "Sendrecv",
                                              "Bcast",    "Barrier",   "Scan",      "Exscan", "Allreduce",
                                              "Alltoall", "Allgather", "Alltoallv", "Put",    "Accumulate"};
enum procedure {
  SEND,
  RECV,
  ISEND,
  IRECV,
  SENDRECV,
  BCAST,
  BARRIER,
  SCAN,
  EXSCAN,
  ALLREDUCE,
  ALLTOALL,
  ALLGATHER,
  ALLTOALLV,
  PUT,
  ACCUMULATE
};

struct counts {
  long long calls, message, sent, received;
};

static struct comm {
  MPI_Comm handle;
  int lives, size, number;
  char members[ROOM];
  struct counts of[PROCEDURES];
} comms[COMMS];
static int n_comms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int size_of(MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  return size;
}

static struct comm* add(MPI_Comm handle) {
  if (n_comms == COMMS) abort();
  struct comm* const comm = &comms[n_comms];
  MPI_Group all, group;
  PMPI_Comm_size(handle, &comm->size);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Comm_group(handle, &group);
  for (int i = 0; i < comm->size; ++i) {
    int rank;
    char text[16];
    PMPI_Group_translate_ranks(group, 1, &i, all, &rank);
    snprintf(text, sizeof text, i == 0 ? "%d" : ",%d", rank);
    strncat(comm->members, text, ROOM - 1 - strlen(comm->members));
  }
  PMPI_Group_free(&all);
  PMPI_Group_free(&group);
  for (int i = 0; i < n_comms; ++i) comm->number += strcmp(comms[i].members, comm->members) == 0;
  comm->handle = handle;
  comm->lives = 1;
  ++n_comms;
  return comm;
}

static void count(enum procedure procedure, MPI_Comm handle, long long message, long long sent, long long received) {
  pthread_mutex_lock(&lock);
  struct comm* comm = NULL;
  for (int i = n_comms - 1; i >= 0 && comm == NULL; --i) {
    if (comms[i].lives && comms[i].handle == handle) comm = &comms[i];
  }
  if (comm == NULL) comm = add(handle);
  struct counts* const counts = &comm->of[procedure];
  ++counts->calls;
  counts->message += message;
  counts->sent += sent;
  counts->received += received;
  pthread_mutex_unlock(&lock);
}

static int ranks(MPI_Comm comm) {
  int size;
  PMPI_Comm_size(comm, &size);
  return size;
}

static int rank_in(MPI_Comm comm) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

static long long got(const MPI_Status* status) {
  MPI_Count bytes;
  PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
  return bytes;
}

int MPI_Send(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  const long long m = (long long)n * size_of(t);
  count(SEND, c, m, to == MPI_PROC_NULL ? 0 : m, 0);
  return PMPI_Send(b, n, t, to, tag, c);
}

int MPI_Isend(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r) {
  const long long m = (long long)n * size_of(t);
  count(ISEND, c, m, to == MPI_PROC_NULL ? 0 : m, 0);
  return PMPI_Isend(b, n, t, to, tag, c, r);
}

int MPI_Irecv(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r) {
  const long long m = (long long)n * size_of(t);
  count(IRECV, c, m, 0, from == MPI_PROC_NULL ? 0 : m);
  return PMPI_Irecv(b, n, t, from, tag, c, r);
}

int MPI_Recv(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s) {
  MPI_Status own;
  const int rc = PMPI_Recv(b, n, t, from, tag, c, &own);
  count(RECV, c, (long long)n * size_of(t), 0, got(&own));
  if (s != MPI_STATUS_IGNORE) *s = own;
  return rc;
}

int MPI_Sendrecv(const void* b, int n, MPI_Datatype t, int to, int tag, void* b2, int n2, MPI_Datatype t2, int from,
                 int tag2, MPI_Comm c, MPI_Status* s) {
  MPI_Status own;
  const long long m = (long long)n * size_of(t);
  const int rc = PMPI_Sendrecv(b, n, t, to, tag, b2, n2, t2, from, tag2, c, &own);
  count(SENDRECV, c, m, to == MPI_PROC_NULL ? 0 : m, from == MPI_PROC_NULL ? 0 : got(&own));
  if (s != MPI_STATUS_IGNORE) *s = own;
  return rc;
}

int MPI_Bcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c) {
  const long long m = (long long)n * size_of(t);
  const int is_root = rank_in(c) == root;
  count(BCAST, c, m, is_root ? m : 0, is_root ? 0 : m);
  return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Barrier(MPI_Comm c) {
  count(BARRIER, c, 0, 0, 0);
  return PMPI_Barrier(c);
}

int MPI_Scan(const void* b, void* b2, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  const long long m = (long long)n * size_of(t);
  count(SCAN, c, m, m, m);
  return PMPI_Scan(b, b2, n, t, op, c);
}

int MPI_Exscan(const void* b, void* b2, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  const long long m = (long long)n * size_of(t);
  count(EXSCAN, c, m, m, rank_in(c) == 0 ? 0 : m);
  return PMPI_Exscan(b, b2, n, t, op, c);
}

int MPI_Allreduce(const void* b, void* b2, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  const long long m = (long long)n * size_of(t);
  count(ALLREDUCE, c, m, m, m);
  return PMPI_Allreduce(b, b2, n, t, op, c);
}

int MPI_Alltoall(const void* b, int n, MPI_Datatype t, void* b2, int n2, MPI_Datatype t2, MPI_Comm c) {
  const long long m = (long long)n2 * size_of(t2);
  const int own = b == MPI_IN_PLACE; /* its own block does not move */
  count(ALLTOALL, c, m, m * (ranks(c) - own), m * (ranks(c) - own));
  return PMPI_Alltoall(b, n, t, b2, n2, t2, c);
}

int MPI_Allgather(const void* b, int n, MPI_Datatype t, void* b2, int n2, MPI_Datatype t2, MPI_Comm c) {
  const long long m = (long long)n2 * size_of(t2);
  count(ALLGATHER, c, m, m, m * (ranks(c) - (b == MPI_IN_PLACE)));
  return PMPI_Allgather(b, n, t, b2, n2, t2, c);
}

int MPI_Alltoallv(const void* b, const int* n, const int* d, MPI_Datatype t, void* b2, const int* n2, const int* d2,
                  MPI_Datatype t2, MPI_Comm c) {
  long long sent = 0, received = 0;
  for (int i = 0; i < ranks(c); ++i) {
    sent += (long long)n[i] * size_of(t);
    received += (long long)n2[i] * size_of(t2);
  }
  count(ALLTOALLV, c, sent, sent, received);
  return PMPI_Alltoallv(b, n, d, t, b2, n2, d2, t2, c);
}

static MPI_Comm of_window = MPI_COMM_NULL; /* no program has more than one window */

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm c, void* base, MPI_Win* win) {
  of_window = c;
  return PMPI_Win_allocate(size, unit, info, c, base, win);
}

int MPI_Put(const void* b, int n, MPI_Datatype t, int to, MPI_Aint at, int n2, MPI_Datatype t2, MPI_Win win) {
  const long long m = (long long)n * size_of(t);
  count(PUT, of_window, m, m, 0);
  return PMPI_Put(b, n, t, to, at, n2, t2, win);
}

int MPI_Accumulate(const void* b, int n, MPI_Datatype t, int to, MPI_Aint at, int n2, MPI_Datatype t2, MPI_Op op,
                   MPI_Win win) {
  const long long m = (long long)n * size_of(t);
  count(ACCUMULATE, of_window, m, m, 0);
  return PMPI_Accumulate(b, n, t, to, at, n2, t2, op, win);
}

int MPI_Comm_free(MPI_Comm* c) {
  pthread_mutex_lock(&lock);
  for (int i = n_comms - 1; i >= 0; --i) {
    if (!comms[i].lives || comms[i].handle != *c) continue;
    comms[i].lives = 0;
    break;
  }
  pthread_mutex_unlock(&lock);
  return PMPI_Comm_free(c);
}

int MPI_Finalize(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", getenv("WITNESS"), rank_in(MPI_COMM_WORLD));
  FILE* const file = fopen(path, "w");
  for (int i = 0; file != NULL && i < n_comms; ++i) {
    for (int p = 0; p < PROCEDURES; ++p) {
      const struct counts* const of = &comms[i].of[p];
      if (of->calls == 0) continue;
      fprintf(file, "MPI_%s %s#%d %d %lld %lld %lld %lld\n", names[p], comms[i].members, comms[i].number, comms[i].size,
              of->calls, of->message, of->sent, of->received);
    }
  }
  if (file != NULL) fclose(file);
  return PMPI_Finalize();
}
