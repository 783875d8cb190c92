/* SPDX-License-Identifier: Apache-2.0
 * Prints every status MPI gives us, and whether it touched what it must not: 2 ranks.
 * The output must be the same with and without a profiler. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
static int rank, data[32], into[32];
static MPI_Comm comm;
static MPI_Request requests[8];
static MPI_Status statuses[8];

/* Status fields the standard leaves undefined keep what we put there: a profiler may not write them either. */
static void canary(void* memory, size_t bytes) { memset(memory, 0x5a, bytes); }

static void show(char const* what, int n, MPI_Status const* statuses) {
  fputs(what, stdout);
  for (int i = 0; i < n; ++i) {
    int count = -1, cancelled = -1;
    MPI_Get_count(&statuses[i], MPI_INT, &count);
    MPI_Test_cancelled(&statuses[i], &cancelled);
    printf(" [%d %d %d, %d %d]", statuses[i].MPI_SOURCE, statuses[i].MPI_TAG, statuses[i].MPI_ERROR, count, cancelled);
  }
  puts("");
}

static void numbers(char const* what, int n, int const* values) {
  fputs(what, stdout);
  for (int i = 0; i < n; ++i) printf(" %d", values[i]);
  puts("");
}

static void send_all(void) {
  for (int tag = 0; tag < 8; ++tag) MPI_Send(data, tag + 1, MPI_INT, 1 - rank, tag, comm);
}

static void receive_all(void) {
  for (int i = 0; i < 8; ++i) MPI_Irecv(into, 32, MPI_INT, 1 - rank, i, comm, &requests[i]);
}

static void sendrecv(void) {
  canary(statuses, sizeof statuses);
  MPI_Sendrecv(data, 3, MPI_INT, 1 - rank, 4, into, 32, MPI_INT, 1 - rank, MPI_ANY_TAG, comm, &statuses[0]);
  show("sendrecv", 1, statuses);
  numbers("data", 3, into);
}

static void waitall(void) {
  canary(statuses, sizeof statuses);
  receive_all();
  send_all();
  MPI_Waitall(8, requests, statuses);
  for (int i = 0; i < 8; ++i) statuses[i].MPI_ERROR = 0; /* only set when something failed */
  show("waitall", 8, statuses);
  numbers("null", 8,
          (int[]){requests[0] == MPI_REQUEST_NULL, requests[1] == MPI_REQUEST_NULL, requests[2] == MPI_REQUEST_NULL,
                  requests[3] == MPI_REQUEST_NULL, requests[4] == MPI_REQUEST_NULL, requests[5] == MPI_REQUEST_NULL,
                  requests[6] == MPI_REQUEST_NULL, requests[7] == MPI_REQUEST_NULL});
}

/* The other calls that complete requests, with statuses or without (MPI_STATUS_IGNORE). */
static void one_by_one(int ignore) {
  int which[8], n, flag;
  receive_all();
  send_all();
  MPI_Barrier(WORLD);
  canary(statuses, sizeof statuses);
  MPI_Wait(&requests[0], ignore ? MPI_STATUS_IGNORE : &statuses[0]);
  for (flag = 0; !flag;) MPI_Test(&requests[1], &flag, ignore ? MPI_STATUS_IGNORE : &statuses[1]);
  MPI_Waitany(1, &requests[2], &n, ignore ? MPI_STATUS_IGNORE : &statuses[2]);
  numbers("waitany", 1, &n);
  for (flag = 0; !flag;) MPI_Testany(1, &requests[3], &n, &flag, ignore ? MPI_STATUS_IGNORE : &statuses[3]);
  numbers("testany", 1, &n);
  canary(which, sizeof which);
  MPI_Waitsome(1, &requests[4], &n, which, ignore ? MPI_STATUSES_IGNORE : &statuses[4]);
  numbers("waitsome", 3, (int[]){n, which[0], which[1]});
  do MPI_Testsome(1, &requests[5], &n, which, ignore ? MPI_STATUSES_IGNORE : &statuses[5]);
  while (n == 0);
  numbers("testsome", 3, (int[]){n, which[0], which[1]});
  for (flag = 0; !flag;) MPI_Testall(2, &requests[6], &flag, ignore ? MPI_STATUSES_IGNORE : &statuses[6]);
  statuses[6].MPI_ERROR = statuses[7].MPI_ERROR = 0;
  if (!ignore) show("one by one", 8, statuses);
  int touched = 0;
  for (size_t i = 0; ignore && i < 6 * sizeof *statuses; ++i) touched |= ((unsigned char*)statuses)[i] != 0x5a;
  numbers("touched", 1, &touched);
}

/* All requests are null. */
static void nothing_left(void) {
  int which[8], n, flag;
  canary(statuses, sizeof statuses);
  MPI_Waitsome(8, requests, &n, which, statuses);
  MPI_Waitany(8, requests, &flag, &statuses[0]);
  numbers("nothing left", 2, (int[]){n == MPI_UNDEFINED, flag == MPI_UNDEFINED});
  statuses[0].MPI_ERROR = 0;
  show("empty", 1, statuses);
}

/* The message is longer than the buffer. */
static void truncated(void) {
  canary(statuses, sizeof statuses);
  for (int i = 0; i < 8; ++i) MPI_Irecv(into, i == 5 ? 2 : 32, MPI_INT, 1 - rank, i, comm, &requests[i]);
  MPI_Barrier(WORLD);
  send_all();
  MPI_Barrier(WORLD);
  int rc = MPI_Waitall(8, requests, statuses), class;
  MPI_Error_class(rc, &class);
  numbers("waitall fails", 1, (int[]){class == MPI_ERR_IN_STATUS});
  MPI_Error_class(statuses[5].MPI_ERROR, &class); /* the others may be pending, or not */
  numbers("truncated", 1, (int[]){class == MPI_ERR_TRUNCATE});
  if (rank == 0) {
    MPI_Recv(into, 1, MPI_INT, 1, 0, comm, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(data, 1, MPI_INT, 0, 0, comm);
  }
}

static void errors(void) {
  int class;
  int rc = MPI_Send(data, 1, MPI_INT, 77, 0, comm);
  MPI_Error_class(rc, &class);
  numbers("no such rank", 1, (int[]){class == MPI_ERR_RANK});
  rc = MPI_Bcast(data, -1, MPI_INT, 0, comm);
  MPI_Error_class(rc, &class);
  numbers("negative count", 1, (int[]){class == MPI_ERR_COUNT});
  rc = MPI_Allreduce(data, into, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
  MPI_Error_class(rc, &class);
  numbers("no type", 1, (int[]){class == MPI_ERR_TYPE});
  rc = MPI_Barrier(MPI_COMM_NULL);
  MPI_Error_class(rc, &class);
  numbers("no communicator", 1, (int[]){class == MPI_ERR_COMM});
}

static void proc_null(void) {
  canary(statuses, sizeof statuses);
  MPI_Recv(into, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &statuses[0]);
  statuses[0].MPI_ERROR = 0;
  show("null", 1, statuses);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  /* a file each: launchers mix the lines of ranks */
  char name[32];
  snprintf(name, sizeof name, "statuses.%d", rank);
  if (freopen(name, "w", stdout) == NULL) MPI_Abort(WORLD, 2);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN); /* MPICH asks it for requests */
  for (int i = 0; i < 32; ++i) data[i] = rank * 100 + i;

  sendrecv();
  waitall();
  for (int ignore = 0; ignore < 2; ++ignore) {
    one_by_one(ignore);
    nothing_left();
  }
  truncated();
  errors();
  proc_null();

  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
