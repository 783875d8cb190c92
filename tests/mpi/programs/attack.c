/* SPDX-License-Identifier: Apache-2.0
 * Threads that make communicators, use and free them, until somebody ends the process: `attack FOLDER HOW`.
 *
 * Each rank counts for itself, in the file FOLDER/<rank>, which is mapped and so outlives it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, DUP, SENDRECV, ALLREDUCE, FREE, KINDS = 4, MANY = 4300 };
struct counts {
  int64_t pid, ready;
  struct {
    int64_t begun, done;
  } of[THREADS][KINDS];
};

static volatile struct counts* mine;
static MPI_Comm parents[THREADS];

#define COUNTED(thread, kind, call)         \
  do {                                      \
    ++mine->of[thread][(kind) - DUP].begun; \
    call;                                   \
    ++mine->of[thread][(kind) - DUP].done;  \
  } while (0)

static void* churn(void* number) {
  intptr_t const t = (intptr_t)number;
  for (;;) {
    MPI_Comm comm;
    int in = 1, out = 0;
    COUNTED(t, DUP, MPI_Comm_dup(parents[t], &comm));
    COUNTED(t, ALLREDUCE, MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm));
    COUNTED(t, SENDRECV, MPI_Sendrecv(&in, 1, MPI_INT, 0, 1, &out, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
    COUNTED(t, FREE, MPI_Comm_free(&comm));
  }
  return NULL;
}

static void* fork_often(void* nothing) {
  for (;;) {
    pid_t const child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
  }
  return nothing;
}

/* More than are kept apart by default, and cells of each. */
static void many(void) {
  static char bytes[4096];
  for (int i = 0; i < MANY; ++i) {
    MPI_Comm comm;
    COUNTED(0, DUP, MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int size = 1; size <= (int)sizeof bytes; size *= 2)
      COUNTED(0, SENDRECV, MPI_Send(bytes, size, MPI_BYTE, MPI_PROC_NULL, 0, comm));
    COUNTED(0, FREE, MPI_Comm_free(&comm));
  }
}

int main(int argc, char** argv) {
  int rank, provided;
  char name[4096];
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "%s/%d", argv[1], rank);
  int const file = open(name, O_RDWR | O_CREAT, 0666);
  if (file < 0 || ftruncate(file, sizeof *mine) != 0) return 9;
  mine = mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int t = 0; t < THREADS; ++t) MPI_Comm_dup(MPI_COMM_SELF, &parents[t]);
  if (strcmp(argv[2], "many") == 0) many();
  mine->pid = getpid();
  MPI_Barrier(MPI_COMM_WORLD);
  mine->ready = 1;
  if (strcmp(argv[2], "many") == 0) pause();
  if (strcmp(argv[2], "forks") == 0) pthread_create(&thread, NULL, fork_often, NULL);
  for (intptr_t t = 1; t < THREADS; ++t) pthread_create(&thread, NULL, churn, (void*)t);
  churn((void*)0);
}
