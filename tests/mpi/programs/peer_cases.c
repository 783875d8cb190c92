/* SPDX-License-Identifier: Apache-2.0
 * Messages that are easily told to the wrong process, or not at all: `peer_cases CASE`.  Each rank keeps a list of its
 * own of what it sends, and prints it: "sent FROM TO MESSAGES BYTES" in world ranks, likewise put, get and share.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most = 64, room = 4096 };
static int rank, size;
static char *self, *runner; /* what starts this program */
static int in[room], out[room];

/* ---- what was said ---- */

enum { sent, put, get, share, flows };
static const char* const names[flows] = {"sent", "put", "get", "share"};
static struct {
  long messages, bytes;
} told[flows][most];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void tell(int flow, int world, long bytes) {
  pthread_mutex_lock(&mutex);
  told[flow][world].messages += 1;
  told[flow][world].bytes += bytes;
  pthread_mutex_unlock(&mutex);
}

static void tell_ints(int world, int n) { tell(sent, world, (long)sizeof(int) * n); }

static void print(void) {
  for (int flow = 0; flow < flows; ++flow)
    for (int i = 0; i < most; ++i)
      if (told[flow][i].messages != 0)
        printf("%s %d %d %ld %ld\n", names[flow], flow == get ? i : rank, flow == get ? rank : i,
               told[flow][i].messages, told[flow][i].bytes);
  fflush(stdout);
}

/* ---- cases ---- */

/* Every rank but 0 sends rank + tag integers with each tag to rank 0, which does not say from whom it receives. */
enum { any_tags = 12 };
static void any_source(MPI_Comm comm) {
  const int others = size - 1;
  MPI_Request some[most];
  MPI_Status statuses[most];
  int places[most], flag = 0, index, n;
  if (rank != 0) {
    for (int tag = 0; tag < any_tags; ++tag) {
      MPI_Send(out, rank + tag, MPI_INT, 0, tag, comm);
      tell_ints(0, rank + tag);
    }
    return;
  }
  for (int i = 0; i < others; ++i) MPI_Recv(in, room, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < others; ++i) MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 1, comm, &some[i]);
  MPI_Waitall(others, some, MPI_STATUSES_IGNORE);
  for (int i = 0; i < others; ++i) MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 2, comm, &some[i]);
  for (int i = 0; i < others; ++i) MPI_Waitany(others, some, &index, MPI_STATUS_IGNORE);
  for (int i = 0; i < others; ++i) MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 3, comm, &some[i]);
  for (int done = 0; done < others; done += n) MPI_Waitsome(others, some, &n, places, MPI_STATUSES_IGNORE);
  MPI_Recv_init(in, room, MPI_INT, MPI_ANY_SOURCE, 4, comm, &some[0]);
  for (int i = 0; i < others; ++i) {
    MPI_Start(&some[0]);
    for (flag = 0; !flag;) MPI_Test(&some[0], &flag, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&some[0]);
  for (int i = 0; i < others; ++i) {
    MPI_Message message;
    MPI_Mprobe(MPI_ANY_SOURCE, 5, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, room, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < others; ++i) {
    MPI_Message message;
    for (flag = 0; !flag;) MPI_Improbe(MPI_ANY_SOURCE, 6, comm, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, room, MPI_INT, &message, &some[0]);
    for (flag = 0; !flag;) MPI_Testany(1, some, &index, &flag, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < others; ++i)
    MPI_Sendrecv(out, 1, MPI_INT, MPI_PROC_NULL, 7, in, room, MPI_INT, MPI_ANY_SOURCE, 7, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < others; ++i)
    MPI_Sendrecv_replace(in, room, MPI_INT, MPI_PROC_NULL, 8, MPI_ANY_SOURCE, 8, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < others; ++i) MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 9, comm, &some[i]);
  for (int done = 0; done < others; done += n) MPI_Testsome(others, some, &n, places, statuses);
  for (int i = 0; i < others; ++i) MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 10, comm, &some[i]);
  for (flag = 0; !flag;) MPI_Testall(others, some, &flag, MPI_STATUSES_IGNORE);
  for (int i = 0; i < others; ++i) {
    MPI_Probe(MPI_ANY_SOURCE, 11, comm, &statuses[0]);
    MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 11, comm, &some[0]);
    for (flag = 0; !flag;) MPI_Request_get_status(some[0], &flag, &statuses[0]);
    MPI_Wait(&some[0], MPI_STATUS_IGNORE);
  }
}

/* All that goes to nobody, and one message to somebody. */
static void proc_null(MPI_Comm comm) {
  const int none = MPI_PROC_NULL;
  MPI_Request r;
  MPI_Message message;
  int flag;
  MPI_Send(out, 3, MPI_INT, none, 0, comm);
  MPI_Ssend(out, 3, MPI_INT, none, 0, comm);
  MPI_Rsend(out, 3, MPI_INT, none, 0, comm);
  MPI_Recv(in, 3, MPI_INT, none, 0, comm, MPI_STATUS_IGNORE);
#define DO(call) call, MPI_Wait(&r, MPI_STATUS_IGNORE)
  DO(MPI_Isend(out, 3, MPI_INT, none, 0, comm, &r));
  DO(MPI_Issend(out, 3, MPI_INT, none, 0, comm, &r));
  DO(MPI_Irecv(in, 3, MPI_INT, none, 0, comm, &r));
  for (int i = 0; i < 2; ++i) {
    i == 0 ? MPI_Send_init(out, 3, MPI_INT, none, 0, comm, &r) : MPI_Recv_init(in, 3, MPI_INT, none, 0, comm, &r);
    for (int k = 0; k < 2; ++k) DO(MPI_Start(&r));
    MPI_Request_free(&r);
  }
  MPI_Sendrecv(out, 3, MPI_INT, none, 0, in, 3, MPI_INT, none, 0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(in, 3, MPI_INT, none, 0, none, 0, comm, MPI_STATUS_IGNORE);
  MPI_Probe(none, 0, comm, MPI_STATUS_IGNORE);
  MPI_Mprobe(none, 0, comm, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 3, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Improbe(none, 0, comm, &flag, &message, MPI_STATUS_IGNORE);
  DO(MPI_Imrecv(in, 3, MPI_INT, &message, &r));
  static int memory[8], result[8];
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, comm, &win);
  MPI_Win_fence(0, win);
  MPI_Put(out, 2, MPI_INT, none, 0, 2, MPI_INT, win);
  MPI_Get(in, 2, MPI_INT, none, 0, 2, MPI_INT, win);
  MPI_Accumulate(out, 2, MPI_INT, none, 0, 2, MPI_INT, MPI_SUM, win);
  MPI_Get_accumulate(out, 2, MPI_INT, result, 2, MPI_INT, none, 0, 2, MPI_INT, MPI_SUM, win);
  MPI_Fetch_and_op(out, result, MPI_INT, none, 0, MPI_SUM, win);
  MPI_Compare_and_swap(out, in, result, MPI_INT, none, 0, win);
  MPI_Win_fence(0, win);
  const int next = (rank + 1) % size;
  MPI_Put(out, 2, MPI_INT, next, 0, 2, MPI_INT, win);
  tell(put, next, 2 * sizeof(int));
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Sendrecv(out, 5, MPI_INT, next, 0, in, 5, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
  tell_ints(next, 5);
}

/* Receives that are cancelled, and some that cannot be any more. */
static void cancelled(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request r, never;
  MPI_Isend(out, 6, MPI_INT, next, 1, comm, &r);
  MPI_Irecv(in, room, MPI_INT, before, 99, comm, &never);
  MPI_Cancel(&never);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  MPI_Recv_init(in, room, MPI_INT, MPI_ANY_SOURCE, 1, comm, &never);
  MPI_Barrier(comm);
  MPI_Start(&never); /* it is there already */
  MPI_Status status;
  while (MPI_Cancel(&never), MPI_Wait(&never, &status), 1) {
    int is_cancelled;
    MPI_Test_cancelled(&status, &is_cancelled);
    if (!is_cancelled) break;
    MPI_Start(&never);
  }
  tell_ints(next, 6);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  MPI_Start(&never); /* and now not */
  MPI_Cancel(&never);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  MPI_Start(&never);
  MPI_Barrier(comm);
  MPI_Send(out, 7, MPI_INT, next, 1, comm);
  tell_ints(next, 7);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  MPI_Request_free(&never);
}

/* Small messages that nobody receives, one of which its sender tries to take back. */
static void unreceived(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request r;
  MPI_Status status;
  MPI_Sendrecv(out, 4, MPI_INT, next, 0, in, 4, MPI_INT, before, 0, comm, MPI_STATUS_IGNORE);
  tell_ints(next, 4);
  MPI_Isend(out, 9, MPI_INT, next, 5, comm, &r);
  tell_ints(next, 9);
  MPI_Cancel(&r);
  MPI_Wait(&r, &status);
  if (rank != 0) return;
  MPI_Isend(out, 11, MPI_INT, next, 5, comm, &r);
  tell_ints(next, 11);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* The first two ranks talk; then rank 1 is gone, with messages under way to it and a receive that had none. */
static void killed(MPI_Comm comm) {
  MPI_Request r;
  for (int i = 1; i <= 3; ++i) {
    if (rank == 0) MPI_Send(out, i, MPI_INT, 1, 0, comm);
    if (rank == 1) MPI_Recv(in, i, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
  }
  if (rank == 1) MPI_Send(out, 7, MPI_INT, 0, 0, comm);
  if (rank == 0) MPI_Recv(in, 7, MPI_INT, 1, 0, comm, MPI_STATUS_IGNORE);
  if (rank == 0) {
    MPI_Isend(out, 8, MPI_INT, 1, 9, comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
  if (rank == 1) raise(SIGKILL);
  for (;;) pause();
}

/* Each parent and each of two children send something to each other. */
static void talk_to_other_world(MPI_Comm link, int base) {
  int remote;
  MPI_Comm_remote_size(link, &remote);
  for (int i = 0; i < remote; ++i) {
    MPI_Request r;
    MPI_Isend(out, base + 10 * rank + i, MPI_INT, i, 0, link, &r);
    MPI_Recv(in, room, MPI_INT, MPI_ANY_SOURCE, 0, link, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
}

static void spawning(MPI_Comm comm) {
  MPI_Comm link, merged;
  char* program[] = {self, "spawn", NULL};
  MPI_Comm_get_parent(&link);
  const int is_child = link != MPI_COMM_NULL;
  if (!is_child) MPI_Comm_spawn(runner, program, 2, MPI_INFO_NULL, 0, comm, &link, MPI_ERRCODES_IGNORE);
  talk_to_other_world(link, is_child ? 100 : 1);
  MPI_Intercomm_merge(link, is_child, &merged);
  int me, all;
  MPI_Comm_rank(merged, &me);
  MPI_Comm_size(merged, &all);
  /* A ring through both worlds. */
  MPI_Sendrecv(out, 200 + me, MPI_INT, (me + 1) % all, 0, in, room, MPI_INT, MPI_ANY_SOURCE, 0, merged,
               MPI_STATUS_IGNORE);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&link);
}

/* Into more room than they need, of a datatype with gaps, and of nothing at all. */
static void partial(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request r;
  MPI_Message message;
  MPI_Datatype gaps;
  MPI_Type_vector(3, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int n = 0; n < 5; ++n) {
    MPI_Irecv(in, room, MPI_INT, before, n, comm, &r);
    MPI_Send(out, n, gaps, next, n, comm);
    tell_ints(next, 3 * n);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, n, MPI_INT, next, n, in, 700, gaps, before, n, comm, MPI_STATUS_IGNORE);
    tell_ints(next, n);
    MPI_Isend(out, n, MPI_INT, next, n, comm, &r);
    tell_ints(next, n);
    MPI_Mprobe(before, n, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 700, gaps, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&gaps);
  char packed[64];
  int used = 0;
  MPI_Pack(out, 4, MPI_INT, packed, sizeof packed, &used, comm);
  MPI_Sendrecv(packed, used, MPI_PACKED, next, 0, in, room, MPI_INT, before, 0, comm, MPI_STATUS_IGNORE);
  tell(sent, next, used);
}

/* Each one started several times. */
static void persistent(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  static char attached[8192];
  MPI_Request r[8];
  MPI_Buffer_attach(attached, sizeof attached);
  MPI_Send_init(out, 1, MPI_INT, next, 0, comm, &r[0]);
  MPI_Ssend_init(out, 2, MPI_INT, next, 1, comm, &r[1]);
  MPI_Bsend_init(out, 3, MPI_INT, next, 2, comm, &r[2]);
  for (int i = 0; i < 4; ++i)
    MPI_Recv_init(in + 100 * i, 100, MPI_INT, i == 2 ? MPI_ANY_SOURCE : before, i, comm, &r[3 + i]);
  MPI_Rsend_init(out, 4, MPI_INT, next, 3, comm, &r[7]);
  for (int k = 0; k < 3; ++k) {
    MPI_Startall(4, r + 3);
    MPI_Barrier(comm);
    MPI_Startall(3, r);
    MPI_Start(&r[7]);
    for (int i = 1; i <= 4; ++i) tell_ints(next, i);
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 8; ++i) MPI_Request_free(&r[i]);
  void* was;
  int length;
  MPI_Buffer_detach(&was, &length);
}

static void replaced(MPI_Comm comm) {
  for (int shift = 0; shift < size; ++shift) {
    const int to = (rank + shift) % size, from = (rank + size - shift) % size;
    MPI_Sendrecv_replace(in, 10 + shift, MPI_INT, to, 0, from, 0, comm, MPI_STATUS_IGNORE);
    tell_ints(to, 10 + shift);
#if MPI_VERSION >= 4
    MPI_Request r;
    DO(MPI_Isendrecv(out, 20 + shift, MPI_INT, to, 0, in, room, MPI_INT, from, 0, comm, &r));
    tell_ints(to, 20 + shift);
    DO(MPI_Isendrecv_replace(in, 30 + shift, MPI_INT, to, 0, from, 0, comm, &r));
    tell_ints(to, 30 + shift);
#endif
  }
}

/* In parts: one message each time it is started, of all parts together. */
static void parts(MPI_Comm comm) {
#if MPI_VERSION >= 4
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request r[2];
  MPI_Psend_init(out, 8, 5, MPI_INT, next, 0, comm, MPI_INFO_NULL, &r[0]);
  MPI_Precv_init(in, 8, 5, MPI_INT, before, 0, comm, MPI_INFO_NULL, &r[1]);
  for (int k = 0; k < 3; ++k) {
    MPI_Startall(2, r);
    MPI_Pready(0, r[0]);
    MPI_Pready_range(4, 7, r[0]);
    MPI_Pready_list(3, (int[]){3, 1, 2}, r[0]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    tell_ints(next, 40);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
#else
  (void)comm;
#endif
}

/* Even ranks from the last on are one group, odd ones from the first on the other. */
static int world_of(int is_odd, int i) { return is_odd ? 2 * i + 1 : (size - 1) / 2 * 2 - 2 * i; }

static void across(MPI_Comm inter, int add) {
  const int is_odd = rank % 2;
  int remote, local_rank;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_rank(inter, &local_rank);
  for (int i = 0; i < remote; ++i) {
    MPI_Request r;
    MPI_Isend(out, 10 * rank + i + add, MPI_INT, i, 0, inter, &r);
    tell_ints(world_of(!is_odd, i), 10 * rank + i + add);
    MPI_Recv(in, room, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
}

static void intercomm(MPI_Comm comm) {
  MPI_Comm group, inter, copy, merged;
  const int is_odd = rank % 2;
  MPI_Comm_split(comm, is_odd, is_odd ? rank : -rank, &group);
  MPI_Intercomm_create(group, 0, comm, world_of(!is_odd, 0), 7, &inter);
  across(inter, 0);
  MPI_Comm_dup(inter, &copy);
  across(copy, 1);
  MPI_Intercomm_merge(inter, is_odd, &merged);
  int me, remote;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_rank(merged, &me);
  if (me == 0) MPI_Send(out, 3, MPI_INT, size - 1, 0, merged), tell_ints(world_of(1, size / 2 - 1), 3);
  if (me == size - 1) MPI_Recv(in, 3, MPI_INT, 0, 0, merged, MPI_STATUS_IGNORE);
  /* collectives between the groups: what each has for each of the other group */
  const int root = is_odd ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(out, 5, MPI_INT, root, inter);
  MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, inter);
  int counts[most], places[most];
  for (int i = 0; i < remote; ++i) counts[i] = 3, places[i] = 3 * i;
  MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, inter);
  MPI_Barrier(inter);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  across(copy, 2);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&group);
}

enum { threads = 4, rounds = 50 };
static MPI_Comm of_threads[threads];
static void* talk(void* number) {
  const int t = (int)(long)number;
  int mine[200], theirs[200];
  memset(mine, 0, sizeof mine);
  for (int k = 0; k < rounds; ++k) {
    const int to = (rank + 1 + (t + k) % size) % size, from = (rank + 2 * size - 1 - (t + k) % size) % size;
    MPI_Request r;
    MPI_Irecv(theirs, 200, MPI_INT, k % 2 ? MPI_ANY_SOURCE : from, k, of_threads[t], &r);
    MPI_Send(mine, k + t, MPI_INT, to, k, of_threads[t]);
    tell_ints(to, k + t);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (k % 10 == 9) {
      MPI_Comm copy;
      MPI_Comm_dup(of_threads[t], &copy);
      MPI_Sendrecv(mine, 1, MPI_INT, to, 0, theirs, 1, MPI_INT, MPI_ANY_SOURCE, 0, copy, MPI_STATUS_IGNORE);
      tell_ints(to, 1);
      MPI_Comm_free(&copy);
    }
  }
  return NULL;
}

static void threaded(MPI_Comm comm) {
  pthread_t ids[threads];
  for (int t = 0; t < threads; ++t) MPI_Comm_dup(comm, &of_threads[t]);
  for (int t = 0; t < threads; ++t) pthread_create(&ids[t], NULL, talk, (void*)(long)t);
  for (int t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
  for (int t = 0; t < threads; ++t) MPI_Comm_free(&of_threads[t]);
}

/* What neighbourhood collectives have for each neighbour, in all their forms; n integers in a block. */
static void with_neighbors(MPI_Comm comm, int destinations, const int* to, int n) {
  int counts[most], places[most];
  MPI_Datatype types[most];
  MPI_Aint wide_places[most];
  MPI_Request r;
  for (int i = 0; i < most; ++i) {
    counts[i] = n, places[i] = n * i, types[i] = MPI_INT, wide_places[i] = (MPI_Aint)(n * i * (int)sizeof(int));
  }
  MPI_Neighbor_allgather(out, n, MPI_INT, in, n, MPI_INT, comm);
  MPI_Neighbor_allgatherv(out, n, MPI_INT, in, counts, places, MPI_INT, comm);
  MPI_Neighbor_alltoall(out, n, MPI_INT, in, n, MPI_INT, comm);
  MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, comm);
  MPI_Neighbor_alltoallw(out, counts, wide_places, types, in, counts, wide_places, types, comm);
  DO(MPI_Ineighbor_allgather(out, n, MPI_INT, in, n, MPI_INT, comm, &r));
  DO(MPI_Ineighbor_allgatherv(out, n, MPI_INT, in, counts, places, MPI_INT, comm, &r));
  DO(MPI_Ineighbor_alltoall(out, n, MPI_INT, in, n, MPI_INT, comm, &r));
  DO(MPI_Ineighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, comm, &r));
  DO(MPI_Ineighbor_alltoallw(out, counts, wide_places, types, in, counts, wide_places, types, comm, &r));
  for (int i = 0; i < destinations; ++i)
    for (int k = 0; k < 10 && to[i] >= 0; ++k) tell(share, to[i], (long)sizeof(int) * n);
}

static void neighbors(MPI_Comm comm) {
  int dims[2] = {size / 2, 2}, periods[2] = {1, 0}, to[4];
  MPI_Comm grid, line, graph;
  MPI_Cart_create(comm, 2, dims, periods, 0, &grid);
  for (int d = 0; d < 2; ++d) MPI_Cart_shift(grid, d, 1, &to[2 * d], &to[2 * d + 1]);
  with_neighbors(grid, 4, to, 3);
  MPI_Comm_free(&grid);
  MPI_Cart_create(comm, 1, (int[]){size}, (int[]){0}, 0, &line);
  MPI_Cart_shift(line, 0, 1, &to[0], &to[1]);
  with_neighbors(line, 2, to, 5);
  MPI_Comm_free(&line);
  /* Everybody to the next two and, but for the last one, to rank 0: which is a neighbour twice, and of itself. */
  const int next = (rank + 1) % size, second = (rank + 2) % size;
  int degree = 2;
  to[0] = next, to[1] = second;
  if (rank != size - 1) to[degree++] = 0;
  int from[most], sources = 0;
  from[sources++] = (rank + size - 1) % size;
  from[sources++] = (rank + size - 2) % size;
  if (rank == 0)
    for (int i = 0; i < size - 1; ++i) from[sources++] = i;
  MPI_Dist_graph_create_adjacent(comm, sources, from, MPI_UNWEIGHTED, degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  with_neighbors(graph, degree, to, 7);
  MPI_Comm_free(&graph);
}

static void one_sided(MPI_Comm comm) {
  MPI_Win win;
  static int memory[64], result[8];
  MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, comm, &win);
  const int next = (rank + 1) % size;
  MPI_Win_lock_all(0, win);
  for (int k = 1; k <= 3; ++k) {
    MPI_Request r;
    MPI_Put(out, k, MPI_INT, next, 0, k, MPI_INT, win), tell(put, next, 4 * k);
    DO(MPI_Rput(out, k, MPI_INT, next, 0, k, MPI_INT, win, &r)), tell(put, next, 4 * k);
    MPI_Accumulate(out, k, MPI_INT, next, 0, k, MPI_INT, MPI_SUM, win), tell(put, next, 4 * k);
    DO(MPI_Raccumulate(out, k, MPI_INT, next, 0, k, MPI_INT, MPI_SUM, win, &r)), tell(put, next, 4 * k);
    MPI_Get(in, k, MPI_INT, next, 0, k, MPI_INT, win), tell(get, next, 4 * k);
    DO(MPI_Rget(in, k, MPI_INT, next, 0, k, MPI_INT, win, &r)), tell(get, next, 4 * k);
    MPI_Get_accumulate(out, k, MPI_INT, result, k, MPI_INT, next, 0, k, MPI_INT, MPI_SUM, win);
    tell(put, next, 4 * k), tell(get, next, 4 * k);
    MPI_Get_accumulate(NULL, 0, MPI_INT, result, k, MPI_INT, next, 0, k, MPI_INT, MPI_NO_OP, win);
    tell(get, next, 4 * k);
    MPI_Win_flush(next, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

/* A child that talks to itself, which MPI does not promise and which works: it is nobody's message. */
static void forked(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 1; i < 100; ++i)
      MPI_Sendrecv_replace(in, 5 * i, MPI_INT, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    _exit(33);
  }
  waitpid(child, &status, 0);
  printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  MPI_Sendrecv_replace(in, 2, MPI_INT, next, 0, before, 0, comm, MPI_STATUS_IGNORE);
  tell_ints(next, 2);
}

static void nobody(MPI_Comm comm) { (void)comm; }

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(MPI_Comm);
  } cases[] = {{"any", any_source},  {"null", proc_null},        {"cancelled", cancelled}, {"unreceived", unreceived},
               {"partial", partial}, {"persistent", persistent}, {"replaced", replaced},   {"parts", parts},
               {"inter", intercomm}, {"threads", threaded},      {"neighbors", neighbors}, {"one-sided", one_sided},
               {"killed", killed},   {"spawn", spawning},        {"forked", forked},       {"nobody", nobody}};
  int provided;
  self = argv[0];
  runner = argc > 2 ? argv[2] : "/usr/bin/env";
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) cases[i].run(MPI_COMM_WORLD);
  print();
  MPI_Finalize();
  return 0;
}
