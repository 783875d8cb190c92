/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of blocking collectives for bench/waiting.py: preloaded after libcommlens, so that commlens calls it and its
 * times contain none of commlens, it stores when each call was entered and left, and writes the records of a rank into
 * the file TRACE/RANK. For programs with one thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum op { barrier, allreduce, bcast, allgather, alltoall, alltoallv };

/* The definition behind this library: commlens, in front of it, would count calls of the PMPI names, too. */
#define NEXT(name)               \
  static __typeof__(&name) next; \
  if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define BEHIND(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct record {
  uint64_t comm; /* a hash of its members: communicators of the same members count as one */
  int64_t op, bytes, root, members, member;
  uint64_t entered, left; /* ns */
};

static struct record* records;
static size_t number, room;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000u * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

/* What is known of the communicator of the last call, and of some before it. */
enum { most_comms = 8192 };
static struct known {
  MPI_Comm comm;
  uint64_t hash;
  int members, member;
} known[most_comms];
static int comms;

static void learn(MPI_Comm comm, struct known* k) {
  MPI_Group world, group;
  k->comm = comm;
  k->hash = 14695981039346656037u;
  BEHIND(PMPI_Comm_group)(MPI_COMM_WORLD, &world);
  BEHIND(PMPI_Comm_group)(comm, &group);
  BEHIND(PMPI_Comm_size)(comm, &k->members);
  BEHIND(PMPI_Comm_rank)(comm, &k->member);
  for (int i = 0; i < k->members; ++i) {
    int rank;
    BEHIND(PMPI_Group_translate_ranks)(group, 1, &i, world, &rank);
    k->hash = (k->hash ^ (uint64_t)rank) * 1099511628211u;
  }
  BEHIND(PMPI_Group_free)(&world);
  BEHIND(PMPI_Group_free)(&group);
}

static const struct known* known_of(MPI_Comm comm) {
  static int last;
  if (last < comms && known[last].comm == comm) return &known[last];
  for (last = 0; last < comms; ++last)
    if (known[last].comm == comm) return &known[last];
  if (comms == most_comms) abort();
  learn(comm, &known[comms]);
  return &known[comms++];
}

static void add(enum op op, MPI_Comm comm, long bytes, int root, uint64_t entered, uint64_t left) {
  if (number == room) {
    room = room == 0 ? 1 << 20 : 2 * room;
    records = realloc(records, room * sizeof *records);
    if (records == NULL) abort();
  }
  const struct known* const k = known_of(comm);
  records[number++] = (struct record){k->hash, op, bytes, root, k->members, k->member, entered, left};
}

static long bytes_of(int count, MPI_Datatype type) {
  NEXT(PMPI_Type_size);
  int size;
  next(type, &size);
  return (long)count * size;
}

#define TRACED(op, comm, bytes, root, call)  \
  const uint64_t entered = now();            \
  const int code = call;                     \
  const uint64_t left = now();               \
  add(op, comm, bytes, root, entered, left); \
  return code

int MPI_Barrier(MPI_Comm comm) {
  NEXT(MPI_Barrier);
  TRACED(barrier, comm, 0, 0, next(comm));
}

int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(MPI_Allreduce);
  TRACED(allreduce, comm, bytes_of(n, type), 0, next(in, out, n, type, op, comm));
}

int MPI_Bcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  NEXT(MPI_Bcast);
  TRACED(bcast, comm, bytes_of(n, type), root, next(data, n, type, root, comm));
}

int MPI_Allgather(const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype to, MPI_Comm comm) {
  NEXT(MPI_Allgather);
  TRACED(allgather, comm, bytes_of(n, type), 0, next(in, n, type, out, m, to, comm));
}

int MPI_Alltoall(const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype to, MPI_Comm comm) {
  NEXT(MPI_Alltoall);
  TRACED(alltoall, comm, bytes_of(n, type), 0, next(in, n, type, out, m, to, comm));
}

int MPI_Alltoallv(const void* in, const int* n, const int* at, MPI_Datatype type, void* out, const int* m,
                  const int* from, MPI_Datatype to, MPI_Comm comm) {
  NEXT(MPI_Alltoallv);
  TRACED(alltoallv, comm, -1, 0, next(in, n, at, type, out, m, from, to, comm));
}

int MPI_Comm_free(MPI_Comm* comm) {
  NEXT(MPI_Comm_free);
  for (int i = 0; i < comms; ++i) {
    if (known[i].comm != *comm) continue;
    known[i] = known[--comms];
    break;
  }
  return next(comm);
}

int MPI_Finalize(void) {
  NEXT(MPI_Finalize);
  int rank;
  char path[4096];
  BEHIND(PMPI_Comm_rank)(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/%d", getenv("TRACE"), rank);
  FILE* const file = fopen(path, "wb");
  if (file == NULL || fwrite(records, sizeof *records, number, file) != number || fclose(file) != 0) abort();
  return next();
}
