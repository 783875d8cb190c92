/* SPDX-License-Identifier: Apache-2.0
 * What a program sees of processes and files that others made inside MPI_Init.  With an argument, it is a child
 * subreaper. */
#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile sig_atomic_t signals;
static void child_ended(int signal) {
  (void)signal;
  ++signals;
}

static int open_files(void) {
  int n = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++n;
  closedir(folder);
  return n;
}

int main(int argc, char** argv) {
  int rank;
  signal(SIGCHLD, child_ended);
  if (argc > 1) prctl(PR_SET_CHILD_SUBREAPER, 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int const child = waitpid(-1, NULL, WNOHANG);
  printf("rank %d: child %d, %s, %d signals, %d files\n", rank, child, strerror(errno), (int)signals, open_files());
  MPI_Finalize();
  return 0;
}
