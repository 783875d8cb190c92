/* SPDX-License-Identifier: Apache-2.0
   A tool that puts a function of its own into Open MPI's table of messages, inside MPI_Init. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

typedef int isend_function(const void*, size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request*);
static isend_function* former;

static int isend(const void* buffer, size_t count, MPI_Datatype type, int peer, int tag, int mode, MPI_Comm comm,
                 MPI_Request* request) {
  return former(buffer, count, type, peer, tag, mode, comm, request);
}

static int put(int rc) {
  void** const table = dlsym(RTLD_DEFAULT, "mca_pml");
  int major = 0;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  PMPI_Get_library_version(version, &major);
  const int slot = version[10] == '4' ? 10 : 11; /* "Open MPI v4..." */
  former = (isend_function*)table[slot];
  table[slot] = (void*)isend;
  return rc;
}

int MPI_Init(int* argc, char*** argv) { return put(PMPI_Init(argc, argv)); }
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return put(PMPI_Init_thread(argc, argv, required, provided));
}
