/* SPDX-License-Identifier: Apache-2.0
 * Preloaded: the fourth time that rank 0 calls the procedure SPOIL, others get something else than the program sends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Returns the buffer, or a copy whose first element is quite another number; the copy stays, for requests. */
static void* sent(const char* procedure, const void* buffer, long elements, long bytes) {
  static int calls;
  const char* const wanted = getenv("SPOIL");
  int rank;
  if (wanted == NULL || strcmp(wanted, procedure) != 0) return (void*)buffer;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0 || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != 4) return (void*)buffer;
  unsigned char* const copy = memcpy(malloc((size_t)(elements * bytes)), buffer, (size_t)(elements * bytes));
  for (long i = 0; i < bytes; ++i) copy[i] ^= i == bytes - 1 ? 0x40 : 0x10;
  return copy;
}

static long size_of(MPI_Datatype type) {
  int bytes;
  PMPI_Type_size(type, &bytes);
  return bytes;
}

static int members(MPI_Comm comm) {
  int n;
  PMPI_Comm_size(comm, &n);
  return n;
}

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return PMPI_Send(sent("MPI_Send", buf, count, size_of(type)), count, type, dest, tag, comm);
}

int MPI_Isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  return PMPI_Isend(sent("MPI_Isend", buf, count, size_of(type)), count, type, dest, tag, comm, request);
}

int MPI_Sendrecv(const void* out, int n_out, MPI_Datatype out_type, int dest, int out_tag, void* in, int n_in,
                 MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status* status) {
  return PMPI_Sendrecv(sent("MPI_Sendrecv", out, n_out, size_of(out_type)), n_out, out_type, dest, out_tag, in, n_in,
                       in_type, source, in_tag, comm, status);
}

void mpi_sendrecv_(double* out, int* n_out, int* out_type, int* dest, int* out_tag, double* in, int* n_in, int* in_type,
                   int* source, int* in_tag, int* comm, int* status, int* error);
void mpi_sendrecv_(double* out, int* n_out, int* out_type, int* dest, int* out_tag, double* in, int* n_in, int* in_type,
                   int* source, int* in_tag, int* comm, int* status, int* error) {
  void (*real)(void*, int*, int*, int*, int*, double*, int*, int*, int*, int*, int*, int*, int*) =
      (void (*)(void*, int*, int*, int*, int*, double*, int*, int*, int*, int*, int*, int*, int*))dlsym(
          RTLD_NEXT, "mpi_sendrecv_");
  real(sent("mpi_sendrecv_", out, *n_out, sizeof *out), n_out, out_type, dest, out_tag, in, n_in, in_type, source,
       in_tag, comm, status, error);
}

int MPI_Accumulate(const void* buf, int count, MPI_Datatype type, int target, MPI_Aint at, int n, MPI_Datatype there,
                   MPI_Op op, MPI_Win win) {
  return PMPI_Accumulate(sent("MPI_Accumulate", buf, count, size_of(type)), count, type, target, at, n, there, op, win);
}

int MPI_Bcast(void* buf, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(sent("MPI_Bcast", buf, count, size_of(type)), count, type, root, comm);
}

int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return PMPI_Allreduce(sent("MPI_Allreduce", out, count, size_of(type)), in, count, type, op, comm);
}

int MPI_Scan(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return PMPI_Scan(sent("MPI_Scan", out, count, size_of(type)), in, count, type, op, comm);
}

int MPI_Alltoall(const void* out, int n_out, MPI_Datatype out_type, void* in, int n_in, MPI_Datatype in_type,
                 MPI_Comm comm) {
  return PMPI_Alltoall(sent("MPI_Alltoall", out, (long)n_out * members(comm), size_of(out_type)), n_out, out_type, in,
                       n_in, in_type, comm);
}

int MPI_Alltoallv(const void* out, const int n_out[], const int out_at[], MPI_Datatype out_type, void* in,
                  const int n_in[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm) {
  const int last = members(comm) - 1;
  return PMPI_Alltoallv(sent("MPI_Alltoallv", out, out_at[last] + n_out[last], size_of(out_type)), n_out, out_at,
                        out_type, in, n_in, in_at, in_type, comm);
}
