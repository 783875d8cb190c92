// SPDX-License-Identifier: Apache-2.0
// A library to preload in front of Open MPI: makes two algorithms of MPI_Alltoall slow, the linear one and that for
// two processes, and no other.  Each call sleeps SLOW_MICROSECONDS; at the end, each process prints how many calls that
// were.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int calls;

// The arguments are those of MPI_Alltoall, and the module of the collective component.
#define SLOW(name)                                                                                       \
  int name(const void* sbuf, int scount, void* sdtype, void* rbuf, int rcount, void* rdtype, void* comm, \
           void* module) {                                                                               \
    typedef int (*Alltoall)(const void*, int, void*, void*, int, void*, void*, void*);                   \
    static Alltoall next;                                                                                \
    if (next == NULL) next = (Alltoall)dlsym(RTLD_NEXT, #name);                                          \
    const char* time = getenv("SLOW_MICROSECONDS");                                                      \
    if (time != NULL) usleep((useconds_t)atoi(time));                                                    \
    ++calls;                                                                                             \
    return next(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);                               \
  }

SLOW(ompi_coll_base_alltoall_intra_basic_linear)
SLOW(ompi_coll_base_alltoall_intra_two_procs)

__attribute__((destructor)) static void tell(void) {
  if (calls != 0) fprintf(stderr, "slow_algorithm: %d slow calls\n", calls);
}
