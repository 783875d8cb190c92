/* SPDX-License-Identifier: Apache-2.0
 * Calls that go untimed among what could disturb them: regions that change between calls and in a callback, persistent
 * requests, calls in callbacks, an error handler that jumps out of a call, signals, and several threads (with any
 * argument; else the error handler).  All numbers
 * are known; each process talks to itself. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "commlens.h"

enum {
  turns = 6000,
  long_turns = 3000,
  restarts = 2500,
  callbacks = 3000,
  jumps = 3000,
  workers = 3,
  of_worker = 2500
};

static void probe(MPI_Comm comm) {
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &flag, MPI_STATUS_IGNORE);
}

/* One call in each of two regions in turns, then long stays in both; all calls from one line. */
static void regions(MPI_Comm comm) {
  for (int i = 0; i < turns + long_turns; ++i) {
    const char* const region = (i < turns ? i : i / 500) % 2 == 0 ? "even" : "odd";
    commlens_begin(region);
    probe(comm);
    commlens_end(region);
  }
}

static void persistent(MPI_Comm comm) {
  char out[16] = {0}, in[16];
  MPI_Request requests[2];
  MPI_Recv_init(in, sizeof in, MPI_CHAR, 0, 1, comm, &requests[0]);
  MPI_Send_init(out, sizeof out, MPI_CHAR, 0, 1, comm, &requests[1]);
  for (int i = 0; i < restarts; ++i) {
    int flag = 0;
    MPI_Startall(2, requests);
    MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE); /* of an inactive one */
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/* Called inside MPI_Testsome: makes a call that is not the application's own, and changes the region at times. */
static int queries;
static int query(void* state, MPI_Status* status) {
  probe(*(MPI_Comm*)state);
  if (++queries % 7 == 0) commlens_begin("callback");
  MPI_Status_set_elements(status, MPI_CHAR, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int release(void* state) {
  (void)state;
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}
static void in_callbacks(MPI_Comm comm) {
  char byte = 0, sent_byte = 0;
  MPI_Request requests[2];
  MPI_Irecv(&byte, 1, MPI_CHAR, 0, 2, comm, &requests[0]);
  for (int i = 0; i < callbacks; ++i) {
    int done = 0, which[2];
    MPI_Grequest_start(query, release, cancel, &comm, &requests[1]);
    MPI_Grequest_complete(requests[1]);
    MPI_Testsome(2, requests, &done, which, MPI_STATUSES_IGNORE);
    if (queries % 7 == 0) commlens_end("callback");
  }
  MPI_Send(&sent_byte, 1, MPI_CHAR, 0, 2, comm);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static jmp_buf before_call;
static void jump(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  longjmp(before_call, 1);
}
/* Every tenth call fails, and never returns. */
static volatile int sent;
static void jumping(MPI_Comm comm) {
  static char out, in[8];
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(jump, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (sent = 0; sent < jumps; ++sent) {
    MPI_Request requests[2];
    if (setjmp(before_call) == 0) {
      if (sent % 10 == 9) MPI_Isend(&out, 1, MPI_CHAR, 1000, 3, comm, &requests[0]);
    }
    MPI_Irecv(in, 1, MPI_CHAR, 0, 3, comm, &requests[0]);
    MPI_Isend(&out, 1, MPI_CHAR, 0, 3, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Errhandler_free(&handler);
}

static void* work(void* comm) {
  for (int i = 0; i < of_worker; ++i) probe(*(MPI_Comm*)comm);
  return NULL;
}
static void threads(MPI_Comm comm) {
  pthread_t ids[workers];
  for (int i = 0; i < workers; ++i) {
    if (pthread_create(&ids[i], NULL, work, &comm) != 0) abort();
  }
  for (int i = 0; i < workers; ++i) pthread_join(ids[i], NULL);
}

static void tick(int number) { (void)number; }

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  if (argc > 1) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  struct sigaction action = {0};
  action.sa_handler = tick;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval each_millisecond = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  MPI_Comm comm[5];
  for (int i = 0; i < 5; ++i) MPI_Comm_dup(MPI_COMM_SELF, &comm[i]);
  setitimer(ITIMER_REAL, &each_millisecond, NULL);
  regions(comm[0]);
  persistent(comm[1]);
  in_callbacks(comm[2]);
  if (argc == 1) jumping(comm[3]); /* MPICH's locks would remain held */
  if (argc > 1 && provided == MPI_THREAD_MULTIPLE) threads(comm[4]);
  setitimer(ITIMER_REAL, &never, NULL);
  for (int i = 0; i < 5; ++i) MPI_Comm_free(&comm[i]);
  MPI_Finalize();
  return 0;
}
