/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls to be counted by valgrind's callgrind: one dump per row, named "ROW|COMMUNICATORS|CALLS". bench/instructions.py
 * runs it without and with commlens.  Knows nothing of commlens; one process, everything to itself.
 *
 * `instructions [MOST [LAYOUT]]`: calls on 1, 32 and 1,024 communicators in turn, but not on more than MOST.  LAYOUT is
 * any number; each puts the communicators at other addresses, where handles are addresses. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

enum { MOST = 1024, FEW = 64, BLOCKS = 16 }; /* MPICH 4.0 has no more than 2,048 communicators */

static MPI_Comm comms[MOST];
static MPI_Request pending[MOST]; /* receives of messages that nobody sends */
static void* gaps[MOST];
static double in, out;

typedef void operation(int i); /* on communicator i */

static void allreduce(int i) { MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comms[i]); }
static void barrier(int i) { MPI_Barrier(comms[i]); }
static void send_to_nobody(int i) { MPI_Send(&in, 1, MPI_DOUBLE, MPI_PROC_NULL, 3, comms[i]); }

static void iprobe(int i) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 2, comms[i], &flag, MPI_STATUS_IGNORE);
}

static void test(int i) {
  int flag;
  MPI_Test(&pending[i], &flag, MPI_STATUS_IGNORE);
}

static void triple(int i) {
  MPI_Request requests[2];
  MPI_Irecv(&out, 1, MPI_DOUBLE, 0, 1, comms[i], &requests[0]);
  MPI_Isend(&in, 1, MPI_DOUBLE, 0, 1, comms[i], &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void sendrecv(int i) {
  MPI_Sendrecv(&in, 1, MPI_DOUBLE, 0, 4, &out, 1, MPI_DOUBLE, 0, 4, comms[i], MPI_STATUS_IGNORE);
}

static const struct row {
  const char* name;
  operation* op;
} rows[] = {
    {"Allreduce 8 B", allreduce}, {"Barrier", barrier},       {"Send 8 B to MPI_PROC_NULL", send_to_nobody},
    {"Iprobe", iprobe},           {"Sendrecv 8 B", sendrecv}, {"Irecv+Isend+Waitall 8 B", triple},
    {"Test of a receive", test}, /* the last one: its requests fill the table of requests */
};

static void make_comms(int most, unsigned layout) {
  for (int i = 0; i < most; ++i) {
    if (layout != 0) gaps[i] = malloc(16 + (size_t)(rand_r(&layout) % 4096));
    MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
  }
}

static void post_receives(int n) {
  for (int i = 0; i < n; ++i) MPI_Irecv(&in, 1, MPI_DOUBLE, 0, 5, comms[i], &pending[i]);
}

static void cancel_receives(int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Cancel(&pending[i]);
    MPI_Wait(&pending[i], MPI_STATUS_IGNORE);
  }
}

static void measure(int most) {
  /* From few to many: commlens keeps more calls from when there were many in turn. */
  for (int n = 1; n <= most; n *= 32) {
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
      if (rows[r].op == test) post_receives(n);
      char label[80];
      const int calls = n < FEW ? FEW : n; /* so few that in some block no slice of time ends */
      snprintf(label, sizeof label, "%s|%d|%d", rows[r].name, n, calls);
      for (int block = 0; block < BLOCKS; ++block) {
        rows[r].op(0); /* to write a dump takes so long that a slice has ended */
        CALLGRIND_TOGGLE_COLLECT;
        for (int i = 0; i < calls; ++i) rows[r].op(i % n);
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS_AT(label);
      }
      if (rows[r].op == test) cancel_receives(n);
    }
  }
}

/* Measures under so many frames that a call path is as long as COMMLENS_FRAMES says. */
static __attribute__((noinline)) void measure_under(int frames, int most) {
  if (frames == 0) {
    measure(most);
  } else {
    measure_under(frames - 1, most);
  }
  __asm__ volatile(""); /* no jump */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int most = argc > 1 ? atoi(argv[1]) : MOST;
  make_comms(most, argc > 2 ? (unsigned)atoi(argv[2]) : 0);
  measure_under(16, most);
  for (int i = 0; i < most; ++i) {
    MPI_Comm_free(&comms[i]);
    free(gaps[i]);
  }
  MPI_Finalize();
  return 0;
}
