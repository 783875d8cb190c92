/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated programs of bytes_script.py stand on: handles, buffers, and the calls whose number depends on
 * timing.  Every MPI call made here is in the script too: the profile is compared call by call, so nothing else
 * may call MPI.  Those loops write one line per call to the log, saying which requests that call completed; the
 * model reads it. */
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HANDLES = 256, REQUESTS = 20000, MESSAGES = 64, RING = 1 << 26 };

static MPI_Comm c[HANDLES];
static MPI_Datatype t[HANDLES];
static MPI_Win w[HANDLES];
static MPI_File f[HANDLES];
static MPI_Group g[HANDLES];
static MPI_Message m[MESSAGES];
static MPI_Request r[REQUESTS];
static MPI_Status status;
static MPI_Status statuses[HANDLES];
static int flag;
static void* memory;
static const char* folder;
static FILE* log_file;

/* Every line of a generated program starts with AT, so that a program that hangs can say where. */
#define AT line = __LINE__;
static volatile sig_atomic_t line;
static int rank;
#ifndef SECONDS
#define SECONDS 30
#endif

static void stuck(int number) {
  (void)number;
  char text[64];
  int length = snprintf(text, sizeof text, "bytes_run: rank %d is stuck in line %d\n", rank, (int)line);
  if (write(STDERR_FILENO, text, (size_t)length)) sleep(1); /* let the others speak before the launcher ends them */
  _exit(3);
}

/* Room for one buffer.  Buffers of pending operations must not overlap; the ring is so large that it comes round
 * only long after.  SLACK: derived datatypes here start up to that many bytes before their buffer address. */
static void* room(size_t bytes) {
  enum { SLACK = 64 };
  static char* ring;
  static size_t used;
  if (ring == NULL) ring = calloc(1, RING);
  if (used + bytes + 2 * SLACK > RING) used = 0;
  char* start = ring + used + SLACK;
  used += (bytes + 2 * SLACK + 63) / 64 * 64;
  return start;
}

static const char* path(const char* name) {
  static char full[4096];
  snprintf(full, sizeof full, "%s/%s", folder, name);
  return full;
}

/* The requests of one completion call stand in one array; `which` says where they come from. */
static MPI_Request row[HANDLES];
static void gather(int n, const int* which) {
  for (int i = 0; i < n; ++i) row[i] = which[i] < 0 ? MPI_REQUEST_NULL : r[which[i]];
}
static void scatter(int n, const int* which) {
  for (int i = 0; i < n; ++i)
    if (which[i] >= 0) r[which[i]] = row[i];
}

/* Nothing completed; the partner may need this core. */
static void log_none(void) {
  fputs("\n", log_file);
  sched_yield();
}
static void log_one(int index) { fprintf(log_file, "%d\n", index); }
static void log_some(int n, const int* indices) {
  if (n == 0 || n == MPI_UNDEFINED) {
    log_none();
    return;
  }
  for (int i = 0; i < n; ++i) fprintf(log_file, "%d ", indices[i]);
  fputs("\n", log_file);
}

/* MPI libraries give one handle to all requests that were complete when they were made.  Nobody can tell those apart,
 * and the profile's rule for them is another one (docs/bytes.md), so the model must know which they are. */
#if defined(OPEN_MPI)
extern char ompi_request_empty[];
#endif
static void made(MPI_Request request) {
#if defined(OPEN_MPI)
  int shared = (char*)request == ompi_request_empty;
#else
  int shared = (unsigned)request >> 30 == 1; /* a predefined object */
#endif
  fprintf(log_file, "%d\n", shared);
}

/* `active` of the n requests are active, the others null or inactive.  Without any active one there is one call,
 * which completes nothing. */
static void Waitany(int n, const int* which, int active) {
  gather(n, which);
  do {
    int index;
    MPI_Waitany(n, row, &index, MPI_STATUS_IGNORE);
    index == MPI_UNDEFINED ? log_none() : log_one(index);
  } while (--active > 0);
  scatter(n, which);
}

static void Waitsome(int n, const int* which, int active) {
  int done, indices[HANDLES];
  gather(n, which);
  do {
    MPI_Waitsome(n, row, &done, indices, statuses);
    log_some(done, indices);
  } while ((active -= done) > 0 && done != MPI_UNDEFINED);
  scatter(n, which);
}

static void Test(int n, const int* which, int active) {
  gather(n, which);
  do {
    MPI_Test(row, &flag, &status);
    flag&& active ? log_one(0) : log_none();
  } while (!flag);
  scatter(n, which);
}

static void Testany(int n, const int* which, int active) {
  gather(n, which);
  do {
    int index;
    MPI_Testany(n, row, &index, &flag, MPI_STATUS_IGNORE);
    flag&& active ? log_one(index) : log_none();
    active -= flag;
  } while (active > 0);
  scatter(n, which);
}

static void Testsome(int n, const int* which, int active) {
  int done, indices[HANDLES];
  gather(n, which);
  do {
    MPI_Testsome(n, row, &done, indices, statuses);
    log_some(done, indices);
  } while ((active -= done) > 0 && done != MPI_UNDEFINED);
  scatter(n, which);
}

/* `live`: the indices of the active requests, what a successful Testall completes. */
static void Testall(int n, const int* which, int active, const int* live) {
  gather(n, which);
  do {
    MPI_Testall(n, row, &flag, statuses);
    flag ? log_some(active, live) : log_none();
  } while (!flag);
  scatter(n, which);
}

static void Iprobe(int source, int tag, MPI_Comm comm) {
  for (flag = 0; !flag;) {
    MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE);
    flag ? log_one(0) : log_none();
  }
}

static void Improbe(int source, int tag, MPI_Comm comm, MPI_Message* message) {
  for (flag = 0; !flag;) {
    MPI_Improbe(source, tag, comm, &flag, message, MPI_STATUS_IGNORE);
    flag ? log_one(0) : log_none();
  }
}

static void Win_test(MPI_Win win) {
  for (flag = 0; !flag;) {
    MPI_Win_test(win, &flag);
    flag ? log_one(0) : log_none();
  }
}

typedef void rank_program(void);

static int run(int argc, char** argv, rank_program* const* programs) {
  MPI_Init(&argc, &argv);
  folder = argv[1];
  c[0] = MPI_COMM_WORLD;
  c[1] = MPI_COMM_SELF;
  for (int i = 0; i < REQUESTS; ++i) r[i] = MPI_REQUEST_NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* the only call that is in no script; `Script.build` knows */
  char name[32];
  snprintf(name, sizeof name, "log.%d", rank);
  log_file = fopen(path(name), "w");
  if (log_file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  signal(SIGALRM, stuck);
  alarm(SECONDS);
  programs[rank]();
  fclose(log_file);
  MPI_Finalize();
  return 0;
}
