/* SPDX-License-Identifier: Apache-2.0
 * A job that is ended from outside, or ends itself: `survive FOLDER HOW`.
 *
 * Each rank counts for itself, in the file FOLDER/<rank>, which is mapped and so outlives it: its process id, and for
 * each kind of call how many were begun and how many had returned.  `stage` is 1 when all ranks have begun to count, 2
 * when this one enters MPI_Finalize. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ALLREDUCE, SENDRECV, IBARRIER, WAIT, KINDS };
struct counts {
  int64_t pid, stage;
  struct {
    int64_t begun, done;
  } of[KINDS];
};

static volatile struct counts* mine;

#define COUNTED(kind, call) \
  do {                      \
    ++mine->of[kind].begun; \
    call;                   \
    ++mine->of[kind].done;  \
  } while (0)

static void one_round(MPI_Comm row, MPI_Comm ring, int rank, int size) {
  int in = 1, out = 0;
  MPI_Request request;
  COUNTED(ALLREDUCE, MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, row));
  COUNTED(SENDRECV, MPI_Sendrecv(&in, 1, MPI_INT, (rank + 1) % size, 1, &out, 1, MPI_INT, (rank + size - 1) % size, 1,
                                 ring, MPI_STATUS_IGNORE));
  COUNTED(IBARRIER, MPI_Ibarrier(ring, &request));
  COUNTED(WAIT, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Sleeps through every even second on the clock of the day: a snapshot every two seconds is taken at its begin. */
static void keep_quiet(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec % 2 != 0) return;
  now.tv_sec += 1;
  now.tv_nsec = 0;
  clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &now, NULL);
}

static void wait_for(const char* folder, const char* file) {
  char name[4096];
  snprintf(name, sizeof name, "%s/%s", folder, file);
  while (access(name, F_OK) != 0) usleep(10000);
}

/* Rank 0 forgets what it has counted; then all count more. */
static void reset(const char* folder, MPI_Comm row, MPI_Comm ring, int rank, int size) {
  wait_for(folder, "go");
  int (*const forget)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "commlens_reset");
  if (rank == 0 && forget != NULL) forget();
  for (int i = 0; i < 30; ++i) one_round(row, ring, rank, size);
  wait_for(folder, "on");
}

static int ends_well(const char* how) {
  const char* const all[] = {"finalize", "end", "wait", "reset"};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) {
    if (strcmp(how, all[i]) == 0) return 1;
  }
  return 0;
}

static void end(const char* how) {
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "fault") == 0) {
    volatile int* const nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *nowhere = 1;
  }
  if (strcmp(how, "term") == 0) raise(SIGTERM);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "_exit") == 0) _exit(3);
  if (strcmp(how, "mpi_abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
}

int main(int argc, char** argv) {
  int rank, size;
  char name[4096];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(name, sizeof name, "%s/%d", argv[1], rank);
  int const file = open(name, O_RDWR | O_CREAT, 0666);
  if (file < 0 || ftruncate(file, sizeof *mine) != 0) return 9;
  mine = mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

  MPI_Comm row, ring;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &row);
  MPI_Comm_set_name(row, rank % 2 ? "odd" : "even");
  MPI_Comm_dup(MPI_COMM_WORLD, &ring);
  MPI_Comm_set_name(ring, "ring");
  mine->pid = getpid();
  MPI_Barrier(MPI_COMM_WORLD);
  mine->stage = 1;
  if (strcmp(argv[2], "skip") == 0) { /* one rank does not come to the barrier of its row */
    if (rank != 1) MPI_Barrier(row);
    if (rank == 1) pause();
  }
  if (strcmp(argv[2], "wait") == 0) wait_for(argv[1], "go");
  int const is_paced = strcmp(argv[2], "paced") == 0;
  for (int i = 0; i < 20 || is_paced || strcmp(argv[2], "run") == 0; ++i) {
    if (is_paced) keep_quiet();
    one_round(row, ring, rank, size);
  }
  if (strcmp(argv[2], "reset") == 0) reset(argv[1], row, ring, rank, size);
  MPI_Barrier(MPI_COMM_WORLD);
  int (*const flush)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "commlens_flush");
  if (strcmp(argv[2], "end") != 0 && flush != NULL && flush() != 0) puts("not flushed");
  if (rank == size - 1) end(argv[2]);
  if (!ends_well(argv[2])) pause();
  mine->stage = 2;
  MPI_Finalize();
  return 0;
}
