/* SPDX-License-Identifier: Apache-2.0
 * An MPI library whose MPI_Wait and MPI_Waitall let the program run something else first, as those for user-level
 * threads do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

void (*before_wait)(void);

static void* next_of(const char* name) {
  if (before_wait != 0) before_wait();
  return dlsym(RTLD_NEXT, name);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  typedef int wait(MPI_Request*, MPI_Status*);
  return ((wait*)next_of("PMPI_Wait"))(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  typedef int waitall(int, MPI_Request[], MPI_Status[]);
  return ((waitall*)next_of("PMPI_Waitall"))(count, requests, statuses);
}
