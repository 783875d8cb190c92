/* SPDX-License-Identifier: Apache-2.0
 * One collective of each kind; prints what each adds to the performance variables of collectives.  An argument is put
 * before their names: "commlens_" for ours where the library has variables of the same names. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 16 };
static const char* const whole[] = {"o2a_count", "o2a_size", "a2o_count", "a2o_size", "a2a_count", "a2a_size"};
static const char* const each[] = {"messages_count", "messages_size"};
static MPI_T_pvar_session session;
static const char* prefix = "";
static int rank, size;
static MPI_Comm comm, world;

struct Watched {
  MPI_T_pvar_handle handle;
  unsigned long before[most];
  int count;
};

static void need(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  printf("%s: %d\n", what, rc);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void watch(struct Watched* w, const char* of, int kind, MPI_Comm* object) {
  char name[128];
  int index = -1;
  snprintf(name, sizeof name, "%scoll_monitoring_%s", prefix, of);
  need(MPI_T_pvar_get_index(name, kind, &index), name);
  need(MPI_T_pvar_handle_alloc(session, index, object, &w->handle, &w->count), name);
  need(MPI_T_pvar_start(session, w->handle), name);
}

static struct Watched shapes[6], peers[2];

static void begin(void) {
  for (int i = 0; i < 6; ++i) need(MPI_T_pvar_read(session, shapes[i].handle, shapes[i].before), whole[i]);
  for (int i = 0; i < 2; ++i) need(MPI_T_pvar_read(session, peers[i].handle, peers[i].before), each[i]);
}

static void end(const char* what) {
  char line[1024];
  int used = snprintf(line, sizeof line, "%s %d:", what, rank);
  for (int i = 0; i < 6; ++i) {
    unsigned long now = 0;
    need(MPI_T_pvar_read(session, shapes[i].handle, &now), whole[i]);
    used += snprintf(line + used, sizeof line - (size_t)used, " %lu", now - shapes[i].before[0]);
  }
  for (int i = 0; i < 2; ++i) {
    unsigned long now[most];
    need(MPI_T_pvar_read(session, peers[i].handle, now), each[i]);
    used += snprintf(line + used, sizeof line - (size_t)used, " |");
    for (int j = 0; j < peers[i].count; ++j)
      used += snprintf(line + used, sizeof line - (size_t)used, " %lu", now[j] - peers[i].before[j]);
  }
  printf("%s\n", line);
  fflush(stdout);
}

#define EACH(name, call) \
  do {                   \
    begin();             \
    call;                \
    end(name);           \
  } while (0)
#define LATER(name, call)                  \
  do {                                     \
    MPI_Request request;                   \
    begin();                               \
    call;                                  \
    MPI_Wait(&request, MPI_STATUS_IGNORE); \
    end(name);                             \
  } while (0)

#define PERSISTENT(name, call)             \
  do {                                     \
    MPI_Request request;                   \
    call;                                  \
    begin();                               \
    MPI_Start(&request);                   \
    MPI_Wait(&request, MPI_STATUS_IGNORE); \
    end(name);                             \
    MPI_Request_free(&request);            \
  } while (0)

static int a[64 * most], b[64 * most];
static int counts[most], places[most], all[most], zeros[most], mine;
static MPI_Datatype types[most];

static void set_blocks(void) {
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1; /* what everybody has for process i */
    all[i] = rank + 1; /* what process i has for this one is the same for all i */
    places[i] = 16 * i;
    zeros[i] = 64 * i;
    types[i] = MPI_INT;
  }
  mine = rank + 1;
}

static void blocking_collectives(void) {
  const int two[] = {2, 2}, there[] = {0, 16};
  EACH("barrier", MPI_Barrier(comm));
  EACH("bcast", MPI_Bcast(a, 3, MPI_INT, 1, comm));
  EACH("gather", MPI_Gather(a, 2, MPI_INT, b, 2, MPI_INT, 1, comm));
  EACH("gatherv", MPI_Gatherv(a, mine, MPI_INT, b, counts, places, MPI_INT, 1, comm));
  EACH("scatter", MPI_Scatter(a, 2, MPI_INT, b, 2, MPI_INT, 1, comm));
  EACH("scatterv", MPI_Scatterv(a, counts, places, MPI_INT, b, mine, MPI_INT, 1, comm));
  EACH("allgather", MPI_Allgather(a, 2, MPI_INT, b, 2, MPI_INT, comm));
  EACH("allgatherv", MPI_Allgatherv(a, mine, MPI_INT, b, counts, places, MPI_INT, comm));
  EACH("alltoall", MPI_Alltoall(a, 2, MPI_INT, b, 2, MPI_INT, comm));
  EACH("alltoallv", MPI_Alltoallv(a, counts, places, MPI_INT, b, all, places, MPI_INT, comm));
  EACH("alltoallw", MPI_Alltoallw(a, counts, zeros, types, b, all, zeros, types, comm));
  EACH("reduce", MPI_Reduce(a, b, 5, MPI_INT, MPI_SUM, 1, comm));
  EACH("allreduce", MPI_Allreduce(a, b, 5, MPI_INT, MPI_SUM, comm));
  EACH("scan", MPI_Scan(a, b, 5, MPI_INT, MPI_SUM, comm));
  EACH("exscan", MPI_Exscan(a, b, 5, MPI_INT, MPI_SUM, comm));
  EACH("reduce_scatter", MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm));
  EACH("reduce_scatter_block", MPI_Reduce_scatter_block(a, b, 2, MPI_INT, MPI_SUM, comm));
  EACH("neighbor_allgather", MPI_Neighbor_allgather(a, 2, MPI_INT, b, 2, MPI_INT, comm));
  EACH("neighbor_alltoall", MPI_Neighbor_alltoall(a, 2, MPI_INT, b, 2, MPI_INT, comm));
  EACH("neighbor_alltoallv", MPI_Neighbor_alltoallv(a, two, there, MPI_INT, b, two, there, MPI_INT, comm));
}

static void nonblocking_collectives(void) {
  LATER("ibarrier", MPI_Ibarrier(comm, &request));
  LATER("ibcast", MPI_Ibcast(a, 3, MPI_INT, 1, comm, &request));
  LATER("igatherv", MPI_Igatherv(a, mine, MPI_INT, b, counts, places, MPI_INT, 1, comm, &request));
  LATER("iallreduce", MPI_Iallreduce(a, b, 5, MPI_INT, MPI_SUM, comm, &request));
  LATER("ialltoallv", MPI_Ialltoallv(a, counts, places, MPI_INT, b, all, places, MPI_INT, comm, &request));
  LATER("ineighbor_alltoall", MPI_Ineighbor_alltoall(a, 2, MPI_INT, b, 2, MPI_INT, comm, &request));
}

/* Counted when they are started. */
static void persistent_collectives(void) {
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  PERSISTENT("bcast_init", MPI_Bcast_init(a, 3, MPI_INT, 1, comm, MPI_INFO_NULL, &request));
  PERSISTENT("alltoallv_init",
             MPI_Alltoallv_init(a, counts, places, MPI_INT, b, all, places, MPI_INT, comm, MPI_INFO_NULL, &request));
#endif
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init(&argc, &argv);
  if (argc > 1) prefix = argv[1];
  world = MPI_COMM_WORLD;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  /* A ring, in the other direction, so that ranks differ from those in WORLD. */
  MPI_Comm turned;
  MPI_Comm_split(world, 0, size - rank, &turned);
  const int dims[] = {size}, periods[] = {1};
  MPI_Cart_create(turned, 1, dims, periods, 0, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  need(MPI_T_pvar_session_create(&session), "session");
  for (int i = 0; i < 6; ++i)
    watch(&shapes[i], whole[i], i % 2 == 0 ? MPI_T_PVAR_CLASS_COUNTER : MPI_T_PVAR_CLASS_AGGREGATE, &comm);
  for (int i = 0; i < 2; ++i) watch(&peers[i], each[i], MPI_T_PVAR_CLASS_SIZE, &world);

  set_blocks();
  blocking_collectives();
  nonblocking_collectives();
  persistent_collectives();
  need(MPI_T_pvar_session_free(&session), "end");
  need(MPI_T_finalize(), "finalize");
  MPI_Comm_free(&comm);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}
