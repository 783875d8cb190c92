// SPDX-License-Identifier: Apache-2.0
// Collectives for which rank 0 comes 2 ms late, where processes or communicators come and go: `late_everywhere CASE`.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { calls = 40, communicators = 100, calls_each = 4 };

static void barriers(MPI_Comm comm, int times) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  const struct timespec late = {0, 2000000};
  for (int i = 0; i < times; ++i) {
    if (rank == 0) nanosleep(&late, NULL);
    MPI_Barrier(comm);
  }
}

// Children between the calls: one that ends without its exit handlers, and one that ends with them.
static void with_children(void) {
  barriers(MPI_COMM_WORLD, calls / 2);
  for (int with_handlers = 0; with_handlers < 2; ++with_handlers) {
    const pid_t child = fork();
    if (child == 0 && with_handlers) exit(0);
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
  }
  barriers(MPI_COMM_WORLD, calls / 2);
}

static void with_freed(int number, int times) {
  for (int i = 0; i < number; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (times > 0) barriers(comm, times);
    if (times == 0) MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "fork") == 0) with_children();
  if (strcmp(what, "freed") == 0) with_freed(communicators, calls_each);
  if (strcmp(what, "many") == 0) with_freed(atoi(argv[2]), 0);
  MPI_Finalize();
  return 0;
}
