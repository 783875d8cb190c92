/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts MPI calls of an unmodified application, independently of commlens and sharing nothing with it: preload it
 * instead of commlens, and compare.  It counts the outermost call of each procedure below, by the size of the
 * communicator in its arguments (0: no communicator there), and writes
 *
 *     PROCEDURE SIZE CALLS
 *
 * per line to $APPS_COUNTER.RANK when the process ends.  It refers to no MPI data symbol: a preloaded library with
 * one keeps every program from starting that is no MPI program, such as the shell of a start script. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 65, MOST_PROCEDURES = 128, NO_COMM = 0 };

static const char* names[MOST_PROCEDURES];
static unsigned long calls[MOST_PROCEDURES][MOST_SIZES];
static int procedures;
static __thread int depth;

/* The definition behind this library; mpi4py loads the MPI library where RTLD_NEXT does not look. */
static void* find(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  static const char* const libraries[] = {"libmpi.so.40", "libmpich.so.12"};
  for (size_t i = 0; found == NULL && i < sizeof libraries / sizeof *libraries; ++i) {
    void* library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) found = dlsym(library, name);
  }
  if (found == NULL) {
    fprintf(stderr, "apps_counter: no %s\n", name);
    abort();
  }
  return found;
}

static int size_of(MPI_Comm comm) {
  static int (*comm_size)(MPI_Comm, int*);
  int size = 0;
  if (comm_size == NULL) comm_size = (int (*)(MPI_Comm, int*))find("PMPI_Comm_size");
  comm_size(comm, &size);
  return size < MOST_SIZES ? size : MOST_SIZES - 1;
}

/* MPI_X and PMPI_X are one procedure.  Not thread-safe: the applications call MPI from one thread. */
static int id_of(const char* name) {
  for (int i = 0; i < procedures; ++i)
    if (strcmp(names[i], name) == 0) return i;
  names[procedures] = name;
  return procedures++;
}

#define ENTRY(prefix, name, parameters, arguments, size) \
  int prefix##name parameters {                          \
    static int(*next) parameters;                        \
    static int id;                                       \
    if (next == NULL) {                                  \
      next = (int(*) parameters)find(#prefix #name);     \
      id = id_of(#name);                                 \
    }                                                    \
    if (depth > 0) return next arguments;                \
    ++depth;                                             \
    ++calls[id][size];                                   \
    int rc = next arguments;                             \
    --depth;                                             \
    return rc;                                           \
  }
#define BOTH(name, parameters, arguments, size) \
  ENTRY(MPI_, name, parameters, arguments, size) ENTRY(PMPI_, name, parameters, arguments, size)
#define ON_COMM(name, parameters, arguments) BOTH(name, parameters, arguments, size_of(comm))
#define NO_COMM_IN(name, parameters, arguments) BOTH(name, parameters, arguments, NO_COMM)

#define T MPI_Datatype
#define SEND(name) ON_COMM(name, (const void* b, int n, T t, int p, int tag, MPI_Comm comm), (b, n, t, p, tag, comm))
#define ISEND(name) \
  ON_COMM(name, (const void* b, int n, T t, int p, int tag, MPI_Comm comm, MPI_Request* r), (b, n, t, p, tag, comm, r))
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)
ISEND(Isend)
ISEND(Issend)
ISEND(Irsend)
ISEND(Send_init)
ON_COMM(Recv, (void* b, int n, T t, int p, int tag, MPI_Comm comm, MPI_Status* s), (b, n, t, p, tag, comm, s))
ON_COMM(Irecv, (void* b, int n, T t, int p, int tag, MPI_Comm comm, MPI_Request* r), (b, n, t, p, tag, comm, r))
ON_COMM(Recv_init, (void* b, int n, T t, int p, int tag, MPI_Comm comm, MPI_Request* r), (b, n, t, p, tag, comm, r))
ON_COMM(Sendrecv,
        (const void* b, int n, T t, int p, int x, void* c, int m, T u, int q, int y, MPI_Comm comm, MPI_Status* s),
        (b, n, t, p, x, c, m, u, q, y, comm, s))
ON_COMM(Sendrecv_replace, (void* b, int n, T t, int p, int x, int q, int y, MPI_Comm comm, MPI_Status* s),
        (b, n, t, p, x, q, y, comm, s))
ON_COMM(Probe, (int p, int tag, MPI_Comm comm, MPI_Status* s), (p, tag, comm, s))
ON_COMM(Iprobe, (int p, int tag, MPI_Comm comm, int* f, MPI_Status* s), (p, tag, comm, f, s))

NO_COMM_IN(Start, (MPI_Request * r), (r))
NO_COMM_IN(Startall, (int n, MPI_Request* r), (n, r))
NO_COMM_IN(Wait, (MPI_Request * r, MPI_Status* s), (r, s))
NO_COMM_IN(Waitall, (int n, MPI_Request* r, MPI_Status* s), (n, r, s))
NO_COMM_IN(Waitany, (int n, MPI_Request* r, int* i, MPI_Status* s), (n, r, i, s))
NO_COMM_IN(Waitsome, (int n, MPI_Request* r, int* k, int* i, MPI_Status* s), (n, r, k, i, s))
NO_COMM_IN(Test, (MPI_Request * r, int* f, MPI_Status* s), (r, f, s))
NO_COMM_IN(Testall, (int n, MPI_Request* r, int* f, MPI_Status* s), (n, r, f, s))
NO_COMM_IN(Testany, (int n, MPI_Request* r, int* i, int* f, MPI_Status* s), (n, r, i, f, s))

#define GATHER(name, ...)                                                                  \
  ON_COMM(name, (const void* b, int n, T t, void* c, int m, T u, int root, MPI_Comm comm), \
          (b, n, t, c, m, u, root, comm))
#define ALLGATHER(name) \
  ON_COMM(name, (const void* b, int n, T t, void* c, int m, T u, MPI_Comm comm), (b, n, t, c, m, u, comm))
#define ALLREDUCE(name) \
  ON_COMM(name, (const void* b, void* c, int n, T t, MPI_Op o, MPI_Comm comm), (b, c, n, t, o, comm))
ON_COMM(Barrier, (MPI_Comm comm), (comm))
ON_COMM(Bcast, (void* b, int n, T t, int root, MPI_Comm comm), (b, n, t, root, comm))
ON_COMM(Ibcast, (void* b, int n, T t, int root, MPI_Comm comm, MPI_Request* r), (b, n, t, root, comm, r))
ON_COMM(Reduce, (const void* b, void* c, int n, T t, MPI_Op o, int root, MPI_Comm comm), (b, c, n, t, o, root, comm))
ALLREDUCE(Allreduce)
ALLREDUCE(Scan)
ALLREDUCE(Exscan)
ALLREDUCE(Reduce_scatter_block)
ON_COMM(Iallreduce, (const void* b, void* c, int n, T t, MPI_Op o, MPI_Comm comm, MPI_Request* r),
        (b, c, n, t, o, comm, r))
ON_COMM(Reduce_scatter, (const void* b, void* c, const int* n, T t, MPI_Op o, MPI_Comm comm), (b, c, n, t, o, comm))
GATHER(Gather)
GATHER(Scatter)
ON_COMM(Gatherv, (const void* b, int n, T t, void* c, const int* m, const int* d, T u, int root, MPI_Comm comm),
        (b, n, t, c, m, d, u, root, comm))
ON_COMM(Scatterv, (const void* b, const int* n, const int* d, T t, void* c, int m, T u, int root, MPI_Comm comm),
        (b, n, d, t, c, m, u, root, comm))
ALLGATHER(Allgather)
ALLGATHER(Alltoall)
ON_COMM(Allgatherv, (const void* b, int n, T t, void* c, const int* m, const int* d, T u, MPI_Comm comm),
        (b, n, t, c, m, d, u, comm))
ON_COMM(Alltoallv,
        (const void* b, const int* n, const int* e, T t, void* c, const int* m, const int* d, T u, MPI_Comm comm),
        (b, n, e, t, c, m, d, u, comm))
ON_COMM(Ibarrier, (MPI_Comm comm, MPI_Request* r), (comm, r))

ON_COMM(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* n), (comm, color, key, n))
ON_COMM(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info i, MPI_Comm* n), (comm, kind, key, i, n))
ON_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm* n), (comm, n))
ON_COMM(Comm_create, (MPI_Comm comm, MPI_Group g, MPI_Comm* n), (comm, g, n))
ON_COMM(Comm_create_group, (MPI_Comm comm, MPI_Group g, int tag, MPI_Comm* n), (comm, g, tag, n))
ON_COMM(Cart_create, (MPI_Comm comm, int n, const int* d, const int* p, int o, MPI_Comm* c), (comm, n, d, p, o, c))
ON_COMM(Cart_sub, (MPI_Comm comm, const int* d, MPI_Comm* n), (comm, d, n))
BOTH(Comm_free, (MPI_Comm * comm), (comm), size_of(*comm))
ON_COMM(Comm_rank, (MPI_Comm comm, int* r), (comm, r))
ON_COMM(Comm_size, (MPI_Comm comm, int* n), (comm, n))
ON_COMM(Comm_group, (MPI_Comm comm, MPI_Group* g), (comm, g))
ON_COMM(Cart_coords, (MPI_Comm comm, int r, int n, int* c), (comm, r, n, c))
ON_COMM(Cart_rank, (MPI_Comm comm, const int* c, int* r), (comm, c, r))
ON_COMM(Cart_shift, (MPI_Comm comm, int d, int n, int* a, int* b), (comm, d, n, a, b))
ON_COMM(Cart_get, (MPI_Comm comm, int n, int* d, int* p, int* c), (comm, n, d, p, c))

NO_COMM_IN(Type_commit, (T * t), (t))
NO_COMM_IN(Type_free, (T * t), (t))
NO_COMM_IN(Type_vector, (int n, int l, int s, T t, T* u), (n, l, s, t, u))
NO_COMM_IN(Type_size, (T t, int* s), (t, s))
NO_COMM_IN(Get_count, (const MPI_Status* s, T t, int* n), (s, t, n))
NO_COMM_IN(Group_incl, (MPI_Group g, int n, const int* r, MPI_Group* h), (g, n, r, h))
NO_COMM_IN(Group_free, (MPI_Group * g), (g))

#define RMA (const void* b, int n, T t, int p, MPI_Aint d, int m, T u, MPI_Win w)
ON_COMM(Win_create, (void* b, MPI_Aint z, int d, MPI_Info i, MPI_Comm comm, MPI_Win* w), (b, z, d, i, comm, w))
ON_COMM(Win_allocate, (MPI_Aint z, int d, MPI_Info i, MPI_Comm comm, void* b, MPI_Win* w), (z, d, i, comm, b, w))
NO_COMM_IN(Win_free, (MPI_Win * w), (w))
NO_COMM_IN(Win_fence, (int a, MPI_Win w), (a, w))
NO_COMM_IN(Win_lock, (int l, int p, int a, MPI_Win w), (l, p, a, w))
NO_COMM_IN(Win_unlock, (int p, MPI_Win w), (p, w))
NO_COMM_IN(Win_lock_all, (int a, MPI_Win w), (a, w))
NO_COMM_IN(Win_unlock_all, (MPI_Win w), (w))
NO_COMM_IN(Win_flush, (int p, MPI_Win w), (p, w))
NO_COMM_IN(Win_flush_all, (MPI_Win w), (w))
NO_COMM_IN(Win_flush_local, (int p, MPI_Win w), (p, w))
NO_COMM_IN(Put, RMA, (b, n, t, p, d, m, u, w))
NO_COMM_IN(Get, (void* b, int n, T t, int p, MPI_Aint d, int m, T u, MPI_Win w), (b, n, t, p, d, m, u, w))
NO_COMM_IN(Accumulate, (const void* b, int n, T t, int p, MPI_Aint d, int m, T u, MPI_Op o, MPI_Win w),
           (b, n, t, p, d, m, u, o, w))
NO_COMM_IN(Fetch_and_op, (const void* b, void* c, T t, int p, MPI_Aint d, MPI_Op o, MPI_Win w), (b, c, t, p, d, o, w))

ON_COMM(File_open, (MPI_Comm comm, const char* n, int m, MPI_Info i, MPI_File* f), (comm, n, m, i, f))
NO_COMM_IN(File_close, (MPI_File * f), (f))
NO_COMM_IN(File_write_at, (MPI_File f, MPI_Offset o, const void* b, int n, T t, MPI_Status* s), (f, o, b, n, t, s))

__attribute__((destructor)) static void write_counts(void) {
  const char* prefix = getenv("APPS_COUNTER");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  if (procedures == 0 || prefix == NULL || rank == NULL) return;
  char path[4096];
  snprintf(path, sizeof path, "%s.%s", prefix, rank);
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  for (int i = 0; i < procedures; ++i)
    for (int size = 0; size < MOST_SIZES; ++size)
      if (calls[i][size] != 0) fprintf(file, "MPI_%s %d %lu\n", names[i], size, calls[i][size]);
  fclose(file);
}
