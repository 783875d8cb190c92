// SPDX-License-Identifier: Apache-2.0
// Shows which algorithm a collective takes, without knowing any: chosen COLLECTIVE...
//
// Prints a line `COLLECTIVE PROCESSES BYTES SIGNATURE` for each collective, communicators of 2 to all ranks and
// messages of 8 bytes to 256 KiB. The signature is a digest of the order in which reductions combine the ranks, and,
// with netmod_sends.c preloaded, of the messages that each rank sends over the network.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 18, MOST_RANKS = 16 };

static uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b << 31 | b >> 33)) * 0x9e3779b97f4a7c15u;
  return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
}

static void mix(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  uint64_t *a = in, *b = inout;
  for (int i = 0; i < *count; i++) b[i] = mixed(a[i], b[i]);
}

static uint64_t *from, *to;

static void call(const char* name, int bytes, int n, MPI_Comm comm, MPI_Op op) {
  MPI_Datatype type = MPI_UINT64_T;
  int count = bytes / 8, counts[MOST_RANKS], places[MOST_RANKS];
  for (int i = 0; i < n; i++) counts[i] = count, places[i] = i * count;
  if (!strcmp(name, "barrier")) MPI_Barrier(comm);
  if (!strcmp(name, "bcast")) MPI_Bcast(from, count, type, 0, comm);
  if (!strcmp(name, "gather")) MPI_Gather(from, count, type, to, count, type, 0, comm);
  if (!strcmp(name, "scatter")) MPI_Scatter(from, count, type, to, count, type, 0, comm);
  if (!strcmp(name, "allgather")) MPI_Allgather(from, count, type, to, count, type, comm);
  if (!strcmp(name, "allgatherv")) MPI_Allgatherv(from, count, type, to, counts, places, type, comm);
  if (!strcmp(name, "alltoall")) MPI_Alltoall(from, count, type, to, count, type, comm);
  if (!strcmp(name, "inplace")) MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, count, type, comm);
  if (!strcmp(name, "reduce")) MPI_Reduce(from, to, count, type, op, 0, comm);
  if (!strcmp(name, "allreduce")) MPI_Allreduce(from, to, count, type, op, comm);
  if (!strcmp(name, "reduce_scatter")) MPI_Reduce_scatter(from, to, counts, type, op, comm);
  if (!strcmp(name, "reduce_scatter_block")) MPI_Reduce_scatter_block(from, to, count, type, op, comm);
}

static void show(const char* name, int bytes, int n, MPI_Comm comm, MPI_Op op, uint64_t (*sends)(void)) {
  int rank, is_reduction = strstr("allreduce reduce_scatter_block", name) != NULL;
  uint64_t signatures[MOST_RANKS], mine = 0;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < MOST_BYTES / 8 * n; i++) from[i] = mixed(rank + 1, i), to[i] = 0;
  MPI_Barrier(comm);
  if (sends) sends();
  call(name, bytes, n, comm, op);
  if (sends) mine = sends();
  if (is_reduction)
    for (int i = 0; i < bytes / 8; i++) mine = mixed(mine, to[i]);
  MPI_Gather(&mine, 1, MPI_UINT64_T, signatures, 1, MPI_UINT64_T, 0, comm);
  if (rank) return;
  for (int i = 1; i < n; i++) signatures[0] = mixed(signatures[0], signatures[i]);
  printf("%s %d %d %016llx\n", name, n, bytes, (unsigned long long)signatures[0]);
}

int main(int count, char** names) {
  int rank, ranks;
  MPI_Op op;
  MPI_Init(&count, &names);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Op_create(mix, 1, &op);
  from = calloc(MOST_RANKS, MOST_BYTES), to = calloc(MOST_RANKS, MOST_BYTES);
  uint64_t (*sends)(void) = (uint64_t (*)(void))dlsym(RTLD_DEFAULT, "sends_since");
  for (int size = 2; size <= ranks; size++) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm == MPI_COMM_NULL) continue;
    for (int i = 1; i < count; i++)
      for (int bytes = 8; bytes <= MOST_BYTES; bytes *= 8) show(names[i], bytes, size, comm, op, sends);
    MPI_Comm_free(&comm);
  }
  MPI_Op_free(&op);
  free(from), free(to);
  MPI_Finalize();
  return 0;
}
