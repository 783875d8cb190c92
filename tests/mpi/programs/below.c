/* SPDX-License-Identifier: Apache-2.0
   One kind of MPI traffic, named by the first argument, on MPI_COMM_WORLD and on parts of it: for comparing the
   messages below its calls with what others count of them. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { most = 4096 };
static int a[64 * most], b[64 * most];
static int counts[64], places[64], byte_places[64];
static MPI_Datatype types[64];

static void fill(int n, int each) {
  for (int i = 0; i < n; ++i) {
    counts[i] = each;
    places[i] = i * each;
    byte_places[i] = i * each * (int)sizeof(int);
    types[i] = MPI_INT;
  }
}

static void blocking(MPI_Comm comm, int n) {
  int size;
  MPI_Comm_size(comm, &size);
  fill(size, n);
  MPI_Barrier(comm);
  MPI_Bcast(a, n, MPI_INT, 0, comm);
  MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, size - 1, comm);
  MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm);
  MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, 0, comm);
  MPI_Gatherv(a, n, MPI_INT, b, counts, places, MPI_INT, 0, comm);
  MPI_Scatter(a, n, MPI_INT, b, n, MPI_INT, 0, comm);
  MPI_Scatterv(a, counts, places, MPI_INT, b, n, MPI_INT, 0, comm);
  MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, comm);
  MPI_Allgatherv(a, n, MPI_INT, b, counts, places, MPI_INT, comm);
  MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, comm);
  MPI_Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, comm);
  MPI_Alltoallw(a, counts, byte_places, types, b, counts, byte_places, types, comm);
  MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, comm);
  MPI_Scan(a, b, n, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(a, b, n, MPI_INT, MPI_SUM, comm);
}

/* One after the other, and some at once. */
static void nonblocking(MPI_Comm comm, int n) {
  MPI_Request r, some[3];
  int size;
  MPI_Comm_size(comm, &size);
  fill(size, n);
#define DO(call) call, MPI_Wait(&r, MPI_STATUS_IGNORE)
  DO(MPI_Ibarrier(comm, &r));
  DO(MPI_Ibcast(a, n, MPI_INT, 0, comm, &r));
  DO(MPI_Ireduce(a, b, n, MPI_INT, MPI_SUM, size - 1, comm, &r));
  DO(MPI_Iallreduce(a, b, n, MPI_INT, MPI_SUM, comm, &r));
  DO(MPI_Igather(a, n, MPI_INT, b, n, MPI_INT, 0, comm, &r));
  DO(MPI_Igatherv(a, n, MPI_INT, b, counts, places, MPI_INT, 0, comm, &r));
  DO(MPI_Iscatter(a, n, MPI_INT, b, n, MPI_INT, 0, comm, &r));
  DO(MPI_Iscatterv(a, counts, places, MPI_INT, b, n, MPI_INT, 0, comm, &r));
  DO(MPI_Iallgather(a, n, MPI_INT, b, n, MPI_INT, comm, &r));
  DO(MPI_Iallgatherv(a, n, MPI_INT, b, counts, places, MPI_INT, comm, &r));
  DO(MPI_Ialltoall(a, n, MPI_INT, b, n, MPI_INT, comm, &r));
  DO(MPI_Ialltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, comm, &r));
  DO(MPI_Ialltoallw(a, counts, byte_places, types, b, counts, byte_places, types, comm, &r));
  DO(MPI_Ireduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm, &r));
  DO(MPI_Ireduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, comm, &r));
  DO(MPI_Iscan(a, b, n, MPI_INT, MPI_SUM, comm, &r));
  DO(MPI_Iexscan(a, b, n, MPI_INT, MPI_SUM, comm, &r));
#undef DO
  MPI_Ibcast(a, n, MPI_INT, 0, comm, &some[0]);
  MPI_Ibarrier(comm, &some[1]);
  MPI_Iallreduce(a + n, b, n, MPI_INT, MPI_SUM, comm, &some[2]);
  MPI_Waitall(3, some, MPI_STATUSES_IGNORE);
}

/* The same calls, each completed at once, or all under way while others are made. */
static void some_at_once(MPI_Comm comm, int n, int at_once) {
  MPI_Request r[8];
  int size, rank, started = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  int* const at = b + 8 * most;
#define DO(call) call, ++started, at_once ? 0 : MPI_Wait(&r[started - 1], MPI_STATUS_IGNORE)
  DO(MPI_Ibcast(b, n, MPI_INT, 0, comm, &r[started]));
  DO(MPI_Iscan(a, at, n, MPI_INT, MPI_SUM, comm, &r[started]));
  DO(MPI_Ialltoall(a, n, MPI_INT, at + 8 * most, n, MPI_INT, comm, &r[started]));
  DO(MPI_Iexscan(a, at + 16 * most, n, MPI_INT, MPI_SUM, comm, &r[started]));
  DO(MPI_Iallreduce(a, at + 24 * most, n, MPI_INT, MPI_SUM, comm, &r[started]));
  fill(size, n);
  DO(MPI_Iallgather(a, n, MPI_INT, at + 32 * most, n, MPI_INT, comm, &r[started]));
  DO(MPI_Ibarrier(comm, &r[started]));
  DO(MPI_Iallgatherv(a, n, MPI_INT, at + 40 * most, counts, places, MPI_INT, comm, &r[started]));
#undef DO
  MPI_Allgather(a, n, MPI_INT, b + most, n, MPI_INT, comm);
  MPI_Sendrecv(a, n, MPI_INT, (rank + 1) % size, 1, at + 48 * most, n, MPI_INT, (rank + size - 1) % size, 1, comm,
               MPI_STATUS_IGNORE);
  if (at_once) MPI_Waitall(started, r, MPI_STATUSES_IGNORE);
}
static void apart(MPI_Comm comm, int n) { some_at_once(comm, n, 0); }
static void together(MPI_Comm comm, int n) { some_at_once(comm, n, 1); }

static void persistent(MPI_Comm comm, int n) {
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  MPI_Request r[17], one[2];
  int size;
  MPI_Comm_size(comm, &size);
  fill(size, n);
  MPI_Barrier_init(comm, MPI_INFO_NULL, &r[0]);
  MPI_Bcast_init(a, n, MPI_INT, 0, comm, MPI_INFO_NULL, &r[1]);
  MPI_Reduce_init(a, b, n, MPI_INT, MPI_SUM, size - 1, comm, MPI_INFO_NULL, &r[2]);
  MPI_Allreduce_init(a, b, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[3]);
  MPI_Gather_init(a, n, MPI_INT, b, n, MPI_INT, 0, comm, MPI_INFO_NULL, &r[4]);
  MPI_Gatherv_init(a, n, MPI_INT, b, counts, places, MPI_INT, 0, comm, MPI_INFO_NULL, &r[5]);
  MPI_Scatter_init(a, n, MPI_INT, b, n, MPI_INT, 0, comm, MPI_INFO_NULL, &r[6]);
  MPI_Scatterv_init(a, counts, places, MPI_INT, b, n, MPI_INT, 0, comm, MPI_INFO_NULL, &r[7]);
  MPI_Allgather_init(a, n, MPI_INT, b, n, MPI_INT, comm, MPI_INFO_NULL, &r[8]);
  MPI_Allgatherv_init(a, n, MPI_INT, b, counts, places, MPI_INT, comm, MPI_INFO_NULL, &r[9]);
  MPI_Alltoall_init(a, n, MPI_INT, b, n, MPI_INT, comm, MPI_INFO_NULL, &r[10]);
  MPI_Alltoallv_init(a, counts, places, MPI_INT, b, counts, places, MPI_INT, comm, MPI_INFO_NULL, &r[11]);
  MPI_Alltoallw_init(a, counts, byte_places, types, b, counts, byte_places, types, comm, MPI_INFO_NULL, &r[12]);
  MPI_Reduce_scatter_init(a, b, counts, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[13]);
  MPI_Reduce_scatter_block_init(a, b, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[14]);
  MPI_Scan_init(a, b, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[15]);
  MPI_Exscan_init(a, b, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[16]);
  for (int i = 0; i < 17; ++i) {
    for (int times = 0; times < 2; ++times) {
      MPI_Start(&r[i]);
      MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r[i]);
  }
  /* At once, first the one that has been started before. */
  MPI_Barrier_init(comm, MPI_INFO_NULL, &one[0]);
  MPI_Start(&one[0]);
  MPI_Wait(&one[0], MPI_STATUS_IGNORE);
  MPI_Alltoall_init(a, n, MPI_INT, b, n, MPI_INT, comm, MPI_INFO_NULL, &one[1]);
  MPI_Startall(2, one);
  MPI_Waitall(2, one, MPI_STATUSES_IGNORE);
  MPI_Request_free(&one[0]);
  MPI_Request_free(&one[1]);
#else
  blocking(comm, n);
#endif
}

static void neighbor(MPI_Comm comm, int n) {
  MPI_Comm grid;
  MPI_Request r;
  int size, dims[2] = {0, 0}, periods[2] = {1, 0}, neighbors = 4;
  MPI_Aint at[4];
  MPI_Comm_size(comm, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(comm, 2, dims, periods, 0, &grid);
  fill(neighbors, n);
  for (int i = 0; i < neighbors; ++i) at[i] = byte_places[i];
  MPI_Neighbor_allgather(a, n, MPI_INT, b, n, MPI_INT, grid);
  MPI_Neighbor_allgatherv(a, n, MPI_INT, b, counts, places, MPI_INT, grid);
  MPI_Neighbor_alltoall(a, n, MPI_INT, b, n, MPI_INT, grid);
  MPI_Neighbor_alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, grid);
  MPI_Neighbor_alltoallw(a, counts, at, types, b, counts, at, types, grid);
  MPI_Ineighbor_allgather(a, n, MPI_INT, b, n, MPI_INT, grid, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Ineighbor_alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, grid, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Comm_free(&grid);
}

/* The application's own messages: each comes by below its call, too. */
static void p2p(MPI_Comm comm, int n) {
  int size, rank;
  MPI_Request r[2];
  MPI_Datatype column;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Type_vector(n, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(a, n, MPI_INT, next, 1, b, n, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE);
  MPI_Irecv(b, 3 * n, MPI_INT, before, 2, comm, &r[0]);
  MPI_Isend(a, 1, column, next, 2, comm, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Send(a, n, MPI_INT, MPI_PROC_NULL, 4, comm);
  MPI_Type_free(&column);
}

static void started(MPI_Comm comm, int n) {
  int size, rank;
  MPI_Request r[2];
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  MPI_Recv_init(b, n, MPI_INT, (rank + size - 1) % size, 3, comm, &r[0]);
  MPI_Send_init(a, n, MPI_INT, (rank + 1) % size, 3, comm, &r[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

/* Open MPI 4 has no windows of one process over ob1. */
static void rma(MPI_Comm comm, int n) {
  MPI_Win win;
  int size, rank, result = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (size == 1) return;
  const int next = (rank + 1) % size;
  MPI_Win_create(b, sizeof b, sizeof(int), MPI_INFO_NULL, comm, &win);
  MPI_Win_fence(0, win);
  MPI_Put(a, n, MPI_INT, next, 0, n, MPI_INT, win);
  MPI_Get(a + n, n, MPI_INT, next, 2 * n, n, MPI_INT, win);
  MPI_Accumulate(a, n, MPI_INT, next, 4 * n, n, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Get_accumulate(a, n, MPI_INT, b, n, MPI_INT, next, 6 * n, n, MPI_INT, MPI_SUM, win);
  MPI_Fetch_and_op(a, &result, MPI_INT, next, 8 * n, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

static void io(MPI_Comm comm, int n) {
  MPI_File file;
  int rank;
  char name[64] = "below.data";
  MPI_Comm_rank(comm, &rank);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, (MPI_Offset)rank * n, a, n, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_read_at_all(file, (MPI_Offset)rank * n, b, n, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

static void creation(MPI_Comm comm, int n) {
  MPI_Comm one, two, three;
  MPI_Request r;
  int rank;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_dup(comm, &one);
  MPI_Comm_split(one, rank % 2, -rank, &two);
  MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, two);
  MPI_Comm_idup(two, &three, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Barrier(three);
  MPI_Comm_free(&three);
  MPI_Comm_free(&two);
  MPI_Comm_free(&one);
}

/* Between the even and the odd ranks. */
static void inter(MPI_Comm comm, int n) {
  MPI_Comm half, both, copy, all;
  int size, rank;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (size == 1) return;
  MPI_Comm_split(comm, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 9, &both);
  MPI_Barrier(both);
  MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, both);
  MPI_Comm_dup(both, &copy);
  MPI_Intercomm_merge(copy, rank % 2, &all);
  MPI_Barrier(all);
  MPI_Comm_free(&all);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

struct Work {
  MPI_Comm comm;
  int n;
};
static void* thread(void* argument) {
  const struct Work* const work = argument;
  int mine[16] = {0}, all[16];
  for (int i = 0; i < work->n; ++i) {
    MPI_Request r;
    MPI_Allreduce(mine, all, 16, MPI_INT, MPI_SUM, work->comm);
    MPI_Ibcast(mine, 16, MPI_INT, 0, work->comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  return NULL;
}
static void threads(MPI_Comm comm, int n) {
  pthread_t other[3];
  struct Work work[3];
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(comm, &work[i].comm);
    work[i].n = 20;
  }
  for (int i = 0; i < 3; ++i) pthread_create(&other[i], NULL, thread, &work[i]);
  for (int i = 0; i < 3; ++i) {
    pthread_join(other[i], NULL);
    MPI_Comm_free(&work[i].comm);
  }
  (void)n;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(MPI_Comm, int);
  } all[] = {{"blocking", blocking},
             {"nonblocking", nonblocking},
             {"persistent", persistent},
             {"neighbor", neighbor},
             {"p2p", p2p},
             {"rma", rma},
             {"io", io},
             {"creation", creation},
             {"threads", threads},
             {"started", started},
             {"inter", inter},
             {"apart", apart},
             {"together", together}};
  int provided, rank;
  MPI_Comm part;
  const int is_threaded = argc > 1 && strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 3 == 0, -rank, &part);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    if (argc < 2 || strcmp(argv[1], all[i].name) != 0) continue;
    for (int n = 2; n <= most; n *= 45) {
      all[i].run(MPI_COMM_WORLD, n);
      if (strcmp(argv[1], "io") != 0) all[i].run(part, n);
    }
  }
  MPI_Comm_free(&part);
  MPI_Finalize();
  return 0;
}
