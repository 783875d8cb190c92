/* SPDX-License-Identifier: Apache-2.0
 * Requests on 2 ranks, one case per run: `requests CASE`.  Communicators: A is the first dup of WORLD, B the second.
 * Rank 0 mostly receives, rank 1 mostly sends; `gate` makes sure a message is there, or is not. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
#define IGNORE_ALL MPI_STATUSES_IGNORE

enum { MANY = 20000 };
static int rank, other;
static MPI_Comm A, B;
static int data[64], into[64];

static void gate(void) { MPI_Barrier(WORLD); }

/* Messages of different communicators, completed by one call. */
static void set(void) {
  MPI_Request requests[6];
  for (int i = 0; i < 3; ++i) {
    MPI_Irecv(into, 8, MPI_INT, other, 0, A, &requests[0]);
    MPI_Irecv(into + 8, 8, MPI_INT, other, 0, B, &requests[1]);
    MPI_Irecv(into + 16, 8, MPI_INT, other, 0, WORLD, &requests[2]);
    MPI_Isend(data, 1, MPI_INT, other, 0, A, &requests[3]);
    MPI_Isend(data, 2, MPI_INT, other, 0, B, &requests[4]);
    MPI_Isend(data, 3, MPI_INT, other, 0, WORLD, &requests[5]);
    MPI_Waitall(6, requests, IGNORE_ALL);
  }
  for (int i = 0; i < 2; ++i) { /* in another order: the same set */
    MPI_Irecv(into, 8, MPI_INT, other, 0, B, &requests[0]);
    MPI_Irecv(into + 8, 8, MPI_INT, other, 0, A, &requests[1]);
    MPI_Send(data, 4, MPI_INT, other, 0, A);
    MPI_Send(data, 5, MPI_INT, other, 0, B);
    MPI_Waitall(2, requests, IGNORE_ALL);
  }
  MPI_Irecv(into, 8, MPI_INT, other, 0, A, &requests[0]);
  MPI_Irecv(into + 8, 8, MPI_INT, other, 0, A, &requests[1]);
  MPI_Send(data, 6, MPI_INT, other, 0, A);
  MPI_Send(data, 7, MPI_INT, other, 0, A);
  MPI_Waitall(2, requests, IGNORE_ALL);
}

/* Calls that complete some of several. */
static void some(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  int which[3], n, flag;
  if (rank == 0) {
    MPI_Irecv(into, 8, MPI_INT, 1, 0, A, &requests[0]);
    MPI_Irecv(into, 8, MPI_INT, 1, 0, A, &requests[2]);
    gate(); /* the first is sent after this */
    MPI_Waitany(3, requests, &n, IGNORE);
    gate();
    MPI_Waitany(3, requests, &n, &statuses[0]);
    MPI_Waitany(3, requests, &n, IGNORE); /* nothing left */
    MPI_Irecv(into, 8, MPI_INT, 1, 0, B, &requests[0]);
    MPI_Irecv(into, 8, MPI_INT, 1, 0, B, &requests[1]);
    gate();
    for (int left = 2; left > 0; left -= n) MPI_Waitsome(3, requests, &n, which, IGNORE_ALL);
    MPI_Waitsome(3, requests, &n, which, IGNORE_ALL);
    MPI_Irecv(into, 8, MPI_INT, 1, 0, B, &requests[0]);
    MPI_Irecv(into, 8, MPI_INT, 1, 0, B, &requests[1]);
    MPI_Testsome(3, requests, &n, which, statuses); /* not sent yet */
    MPI_Testany(3, requests, &n, &flag, IGNORE);
    MPI_Testall(3, requests, &flag, IGNORE_ALL);
    MPI_Test(&requests[0], &flag, IGNORE);
    gate();
    gate();
    for (int left = 2; left > 0; left -= n) MPI_Testsome(3, requests, &n, which, IGNORE_ALL);
  } else {
    gate();
    MPI_Send(data, 2, MPI_INT, 0, 0, A);
    gate();
    MPI_Send(data, 3, MPI_INT, 0, 0, A);
    gate();
    MPI_Send(data, 4, MPI_INT, 0, 0, B);
    MPI_Send(data, 5, MPI_INT, 0, 0, B);
    gate();
    MPI_Send(data, 6, MPI_INT, 0, 0, B);
    MPI_Send(data, 7, MPI_INT, 0, 0, B);
    gate();
  }
}

/* Nothing to wait for. */
static void nothing(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int flag, n;
  MPI_Wait(&requests[0], IGNORE);
  MPI_Waitall(2, requests, IGNORE_ALL);
  MPI_Waitall(0, requests, IGNORE_ALL);
  MPI_Test(&requests[0], &flag, IGNORE);
  MPI_Testall(2, requests, &flag, IGNORE_ALL);
  MPI_Waitany(2, requests, &n, IGNORE);
  MPI_Recv_init(into, 1, MPI_INT, other, 0, A, &requests[0]);
  MPI_Wait(&requests[0], IGNORE); /* not started: returns at once */
  MPI_Test(&requests[0], &flag, IGNORE);
  MPI_Request_free(&requests[0]);
}

static void persistent(void) {
  MPI_Request requests[4];
  MPI_Send_init(data, 5, MPI_INT, other, 1, A, &requests[0]);
  MPI_Recv_init(into, 8, MPI_INT, other, 1, A, &requests[1]);
  MPI_Ssend_init(data, 6, MPI_INT, other, 2, B, &requests[2]);
  MPI_Recv_init(into + 8, 8, MPI_INT, other, 2, B, &requests[3]);
  for (int i = 0; i < 5; ++i) {
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, IGNORE_ALL);
  }
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, IGNORE_ALL);
  }
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
  /* handles come again, with another communicator behind them */
  MPI_Send_init(data, 1, MPI_INT, other, 1, B, &requests[0]);
  MPI_Recv_init(into, 8, MPI_INT, other, 1, B, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Wait(&requests[1], IGNORE);
  MPI_Wait(&requests[0], IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/* Requests the application gives away, and takes back. */
static void abandoned(void) {
  MPI_Request request;
  MPI_Status status;
  int flag;
  if (rank == 1) {
    MPI_Isend(data, 4, MPI_INT, 0, 0, A, &request);
    MPI_Request_free(&request);
    gate();
    gate();
    MPI_Send(data, 3, MPI_INT, 0, 5, B);
  } else {
    MPI_Irecv(into, 8, MPI_INT, 1, 0, A, &request);
    MPI_Request_free(&request); /* still active: nobody will know when it completes */
    gate();
    MPI_Irecv(into, 8, MPI_INT, 1, 9, B, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    if (!flag) puts("not cancelled");
    gate();
    MPI_Irecv(into, 8, MPI_INT, 1, 5, B, &request);
    MPI_Request_get_status(request, &flag, IGNORE);
    MPI_Wait(&request, IGNORE);
  }
}

/* Several requests under one handle, as both MPIs do with those that are complete at once. */
static void shared(void) {
  MPI_Request requests[4];
  for (int i = 0; i < 4; ++i) MPI_Isend(data, 1, MPI_INT, other, i, A, &requests[i]);
  for (int i = 0; i < 4; ++i) MPI_Recv(into, 1, MPI_INT, other, i, A, IGNORE);
  for (int i = 0; i < 4; ++i) MPI_Wait(&requests[i], IGNORE);
  for (int i = 0; i < 4; ++i) MPI_Irecv(into, 1, MPI_INT, MPI_PROC_NULL, i, B, &requests[i]);
  MPI_Wait(&requests[0], IGNORE);
  MPI_Waitall(3, requests + 1, IGNORE_ALL);
  for (int i = 0; i < 2; ++i) MPI_Isend(data, 2, MPI_INT, MPI_PROC_NULL, i, A, &requests[i]);
  for (int i = 2; i < 4; ++i) MPI_Isend(data, 2, MPI_INT, MPI_PROC_NULL, i, B, &requests[i]);
  MPI_Waitall(4, requests, IGNORE_ALL); /* two of A, two of B */
  MPI_Isend(data, 1, MPI_INT, MPI_PROC_NULL, 0, A, &requests[0]);
  MPI_Isend(data, 1, MPI_INT, MPI_PROC_NULL, 0, B, &requests[1]);
  MPI_Wait(&requests[0], IGNORE);
  MPI_Wait(&requests[1], IGNORE);
  MPI_Ibarrier(WORLD, &requests[0]);
  MPI_Wait(&requests[0], IGNORE);
}

static void many(void) {
  MPI_Request* requests = malloc(MANY * sizeof *requests);
  int* values = calloc(MANY, sizeof *values);
  if (rank == 0) {
    for (int i = 0; i < MANY; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 1, i, i % 2 ? A : B, &requests[i]);
    gate();
    for (int i = MANY - 1; i >= MANY / 2; --i) MPI_Wait(&requests[i], IGNORE);
    MPI_Waitall(MANY / 2, requests, IGNORE_ALL);
    long sum = 0;
    for (int i = 0; i < MANY; ++i) sum += values[i];
    printf("%ld\n", sum);
  } else {
    gate();
    for (int i = 0; i < MANY; ++i) MPI_Send(&i, 1, MPI_INT, 0, i, i % 2 ? A : B);
  }
  free(values);
  free(requests);
}

/* Started in one thread, completed in another. */
enum { ROUNDS = 500, WIDTH = 8 };
static MPI_Request handed[WIDTH];
static int const payloads[WIDTH] = {1, 2, 3, 4, 5, 6, 7, 8};
static pthread_barrier_t hand_over;

static void* starter(void* unused) {
  static int buffers[WIDTH][8];
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < WIDTH; ++i) MPI_Irecv(buffers[i], 8, MPI_INT, other, i, i % 2 ? A : B, &handed[i]);
    pthread_barrier_wait(&hand_over);
    pthread_barrier_wait(&hand_over);
  }
  return unused;
}

static void threads(void) {
  pthread_t thread;
  pthread_barrier_init(&hand_over, NULL, 2);
  pthread_create(&thread, NULL, starter, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    pthread_barrier_wait(&hand_over);
    for (int i = 0; i < WIDTH; ++i) MPI_Send(data, payloads[i], MPI_INT, other, i, i % 2 ? A : B);
    for (int i = 0; i < WIDTH; ++i) MPI_Wait(&handed[i], IGNORE);
    pthread_barrier_wait(&hand_over);
  }
  pthread_join(thread, NULL);
}

/* Many threads meet the same new set of communicators at once. */
enum { THREADS = 8, EXCHANGES = 100 };

static void* exchanger(void* number) {
  int const tag = (int)(size_t)number;
  int in[2], out = 7;
  for (int i = 0; i < EXCHANGES; ++i) {
    MPI_Request requests[4];
    MPI_Irecv(&in[0], 1, MPI_INT, other, tag, A, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, other, tag, B, &requests[1]);
    MPI_Isend(&out, 1, MPI_INT, other, tag, A, &requests[2]);
    MPI_Isend(&out, 1, MPI_INT, other, tag, B, &requests[3]);
    MPI_Waitall(4, requests, IGNORE_ALL);
  }
  return NULL;
}

static void sets(void) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, exchanger, (void*)i);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

/* Matched probes: the request of a message. */
static void matched(void) {
  MPI_Message message;
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  if (rank == 1) {
    MPI_Send(data, 3, MPI_INT, 0, 0, A);
    MPI_Send(data, 4, MPI_INT, 0, 1, A);
    MPI_Send(data, 5, MPI_INT, 0, 2, A);
    gate();
  } else {
    gate();
    MPI_Mprobe(1, 0, A, &message, IGNORE);
    MPI_Mrecv(into, 8, MPI_INT, &message, IGNORE);
    while (!flag) MPI_Improbe(1, 1, A, &flag, &message, &status);
    MPI_Imrecv(into, 8, MPI_INT, &message, &request);
    MPI_Wait(&request, IGNORE);
    MPI_Probe(1, MPI_ANY_TAG, A, &status);
    MPI_Recv(into, 8, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, A, IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, B, &message, IGNORE);
    MPI_Imrecv(into, 8, MPI_INT, &message, &request);
    MPI_Wait(&request, IGNORE);
  }
}

/* Bytes are of the call that made the request, once for each time it was started. */
static void partitioned(void) {
#if MPI_VERSION >= 4
  MPI_Request requests[2];
  int flag;
  MPI_Psend_init(data, 8, 2, MPI_INT, other, 0, A, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(into, 4, 4, MPI_INT, other, 0, A, MPI_INFO_NULL, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Pready(3, requests[0]);
    MPI_Pready_range(4, 7, requests[0]);
    MPI_Parrived(requests[1], 2, &flag);
    MPI_Pready_list(3, (int[]){2, 0, 1}, requests[0]);
    MPI_Waitall(2, requests, IGNORE_ALL);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
#endif
}

static void collectives(void) {
#if MPI_VERSION >= 4
  MPI_Request requests[4];
  MPI_Allreduce_init(data, into, 3, MPI_INT, MPI_SUM, A, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(into + 8, 5, MPI_INT, 1, B, MPI_INFO_NULL, &requests[1]);
  MPI_Barrier_init(WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Alltoallv_init(data, (int[]){1, 2}, (int[]){0, 4}, MPI_INT, into + 16, (int[]){rank + 1, rank + 1}, (int[]){0, 4},
                     MPI_INT, A, MPI_INFO_NULL, &requests[3]);
  for (int i = 0; i < 4; ++i) {
    MPI_Startall(3, requests);
    MPI_Waitall(3, requests, IGNORE_ALL);
  }
  MPI_Start(&requests[0]);
  MPI_Wait(&requests[0], IGNORE);
  MPI_Start(&requests[3]);
  MPI_Wait(&requests[3], IGNORE);
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
#endif
}

static void replaced(void) {
  MPI_Sendrecv_replace(into, 6, MPI_INT, other, 0, other, 0, A, IGNORE);
  MPI_Sendrecv_replace(into, 5, MPI_INT, rank == 0 ? 1 : MPI_PROC_NULL, 0, rank == 0 ? MPI_PROC_NULL : 0, 0, A, IGNORE);
#if MPI_VERSION >= 4
  MPI_Request requests[2];
  MPI_Isendrecv(data, 3, MPI_INT, other, 0, into, 8, MPI_INT, other, 0, A, &requests[0]);
  MPI_Isendrecv_replace(into + 8, 4, MPI_INT, other, 0, other, 0, B, &requests[1]);
  MPI_Waitall(2, requests, IGNORE_ALL);
#endif
}

static void buffered(void) {
  static char room[2048];
  void* back;
  int bytes, flag;
  MPI_Request request;
  MPI_Status status;
  MPI_Buffer_attach(room, sizeof room);
  MPI_Bsend(data, 4, MPI_INT, other, 0, A);
  MPI_Ibsend(data, 5, MPI_INT, other, 1, B, &request);
  MPI_Wait(&request, IGNORE);
  MPI_Recv(into, 8, MPI_INT, other, 0, A, IGNORE);
  MPI_Recv(into, 8, MPI_INT, other, 1, B, IGNORE);
  MPI_Buffer_detach(&back, &bytes);
  if (back != room || bytes != (int)sizeof room) abort();
  /* looked at without completing: the bytes are there once, when it completes */
  MPI_Irecv(into, 8, MPI_INT, other, 2, A, &request);
  MPI_Request_get_status(request, &flag, &status);
  MPI_Send(data, 7, MPI_INT, other, 2, A);
  gate();
  MPI_Request_get_status(request, &flag, IGNORE);
  MPI_Request_get_status(request, &flag, &status);
  MPI_Wait(&request, IGNORE);
  MPI_Request_get_status(request, &flag, IGNORE); /* null by now */
}

static int query(void* made, MPI_Status* status) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, IGNORE); /* a call inside a call */
  MPI_Status_set_elements(status, MPI_BYTE, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  *(int*)made += 1;
  return MPI_SUCCESS;
}
static int forget(void* made) { return *(int*)made += 10, MPI_SUCCESS; }
static int no_cancel(void* made, int complete) { return (void)made, (void)complete, MPI_SUCCESS; }

/* Every kind of request there is, of many communicators, completed by one call. */
static void all_kinds(void) {
  MPI_Request requests[12];
  MPI_Comm quiet, self;
  MPI_Win window;
  MPI_File file;
  char name[32];
  snprintf(name, sizeof name, "kinds.%d", rank);
  MPI_Comm_dup(WORLD, &quiet);
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Win_create(into, sizeof into, 1, MPI_INFO_NULL, B, &window);
  MPI_File_open(self, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_Win_lock_all(0, window);
  int n = 0, made = 0;
  MPI_Irecv(into, 8, MPI_INT, other, 0, A, &requests[n++]);
  MPI_Isend(data, 2, MPI_INT, other, 0, A, &requests[n++]);
  MPI_Irecv(into + 16, 8, MPI_INT, other, 1, B, &requests[n++]);
  MPI_Issend(data, 1, MPI_INT, other, 1, B, &requests[n++]);
  requests[n++] = MPI_REQUEST_NULL;
  MPI_Recv_init(into, 1, MPI_INT, other, 9, quiet, &requests[n++]); /* inactive */
  MPI_Iallreduce(data + 8, into + 8, 3, MPI_INT, MPI_SUM, WORLD, &requests[n++]);
  MPI_Rput(data, 4, MPI_INT, other, 128, 4, MPI_INT, window, &requests[n++]);
  MPI_File_iwrite_at(file, 0, data, 5, MPI_INT, &requests[n++]);
  MPI_Grequest_start(query, forget, no_cancel, &made, &requests[n++]);
  MPI_Grequest_complete(requests[n - 1]);
  MPI_Ibarrier(WORLD, &requests[n++]);
  MPI_Waitall(n, requests, IGNORE_ALL);
  MPI_Win_unlock_all(window);
  MPI_Request_free(&requests[5]);
  MPI_File_close(&file);
  MPI_Win_free(&window);
  MPI_Comm_free(&quiet);
  MPI_Comm_free(&self);
  if (made != 11) abort();
}

/* Requests that outlive their communicator; MPI may give its handle to another one meanwhile. */
static void outlived(void) {
  MPI_Request requests[4];
  MPI_Comm first, second;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(A, &first);
    MPI_Irecv(into, 8, MPI_INT, other, 0, first, &requests[0]);
    MPI_Issend(data, 1, MPI_INT, other, 0, first, &requests[1]);
    MPI_Comm_free(&first);
    MPI_Comm_dup(B, &second);
    MPI_Irecv(into + 8, 8, MPI_INT, other, 0, second, &requests[2]);
    MPI_Issend(data, 2, MPI_INT, other, 0, second, &requests[3]);
    MPI_Waitall(2, requests, IGNORE_ALL); /* of the first */
    MPI_Comm_free(&second);
    MPI_Request copies[2] = {requests[3], requests[2]}; /* handles are values */
    MPI_Waitall(2, copies, IGNORE_ALL);
  }
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  int provided;
  MPI_Init_thread(&argc, &argv,
                  strcmp(what, "threads") && strcmp(what, "sets") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(WORLD, &rank);
  other = 1 - rank;
  MPI_Comm_dup(WORLD, &A);
  MPI_Comm_dup(WORLD, &B);
  struct {
    char const* name;
    void (*run)(void);
  } const cases[] = {{"set", set},
                     {"some", some},
                     {"nothing", nothing},
                     {"persistent", persistent},
                     {"abandoned", abandoned},
                     {"shared", shared},
                     {"many", many},
                     {"threads", threads},
                     {"matched", matched},
                     {"sets", sets},
                     {"partitioned", partitioned},
                     {"collectives", collectives},
                     {"replaced", replaced},
                     {"buffered", buffered},
                     {"all_kinds", all_kinds},
                     {"outlived", outlived}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (strcmp(what, cases[i].name) == 0) cases[i].run();
  MPI_Comm_free(&A);
  MPI_Comm_free(&B);
  if (rank == 0) printf("%s done\n", what);
  MPI_Finalize();
  return 0;
}
