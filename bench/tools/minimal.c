/* SPDX-License-Identifier: Apache-2.0
 *
 * The least a profiler can do in a call: look at the clock twice, add up and count.  What no profiler that takes times
 * can be cheaper than; see bench/overhead.py.  With -DONLY_WAITING calls that cannot wait are only counted, as commlens
 * does with most of them; see bench/versions.py. */
#include <mpi.h>
#include <stdio.h>
#include <x86intrin.h>

static unsigned long long calls, ticks;

#define TIMED(name, parameters, arguments)      \
  int name parameters {                         \
    const unsigned long long begin = __rdtsc(); \
    const int rc = P##name arguments;           \
    ticks += __rdtsc() - begin;                 \
    ++calls;                                    \
    return rc;                                  \
  }

#ifdef ONLY_WAITING
#define COUNTED(name, parameters, arguments) \
  int name parameters {                      \
    ++calls;                                 \
    return P##name arguments;                \
  }
#else
#define COUNTED TIMED
#endif

TIMED(MPI_Allreduce, (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (in, out, n, type, op, comm))
TIMED(MPI_Bcast, (void* data, int n, MPI_Datatype type, int root, MPI_Comm comm), (data, n, type, root, comm))
TIMED(MPI_Barrier, (MPI_Comm comm), (comm))
TIMED(MPI_Send, (const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (in, n, type, to, tag, comm))
COUNTED(MPI_Isend, (const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
        (in, n, type, to, tag, comm, request))
COUNTED(MPI_Irecv, (void* out, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request),
        (out, n, type, from, tag, comm, request))
TIMED(MPI_Waitall, (int n, MPI_Request* requests, MPI_Status* statuses), (n, requests, statuses))
COUNTED(MPI_Iprobe, (int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status), (from, tag, comm, flag, status))

COUNTED(MPI_Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
TIMED(MPI_Wait, (MPI_Request * request, MPI_Status* status), (request, status))
TIMED(MPI_Recv, (void* out, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
      (out, n, type, from, tag, comm, status))
TIMED(MPI_Sendrecv,
      (const void* out, int n, MPI_Datatype type, int to, int tag, void* in, int most, MPI_Datatype received, int from,
       int its_tag, MPI_Comm comm, MPI_Status* status),
      (out, n, type, to, tag, in, most, received, from, its_tag, comm, status))
TIMED(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made))
TIMED(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
TIMED(MPI_Comm_free, (MPI_Comm * comm), (comm))
COUNTED(MPI_Put,
        (const void* from, int n, MPI_Datatype type, int rank, MPI_Aint at, int m, MPI_Datatype there, MPI_Win win),
        (from, n, type, rank, at, m, there, win))
COUNTED(MPI_Accumulate,
        (const void* from, int n, MPI_Datatype type, int rank, MPI_Aint at, int m, MPI_Datatype there, MPI_Op op,
         MPI_Win win),
        (from, n, type, rank, at, m, there, op, win))
TIMED(MPI_Win_flush, (int rank, MPI_Win win), (rank, win))
TIMED(MPI_Win_lock_all, (int assert, MPI_Win win), (assert, win))
TIMED(MPI_Win_unlock_all, (MPI_Win win), (win))
COUNTED(MPI_Win_sync, (MPI_Win win), (win))

/* Else the compiler leaves out what nobody reads. */
__attribute__((destructor)) static void say(void) {
  if (calls == 1) fprintf(stderr, "%llu\n", ticks);
}
