/* SPDX-License-Identifier: Apache-2.0
 * A thread forks in an open region.  The child's copy of the thread ends, and the thread of the parent goes on. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int status = -1;

static void* work(void* none) {
  commlens_begin("work");
  const pid_t child = fork();
  if (child == 0) return none; /* the last thread of its process, which ends with it */
  waitpid(child, &status, 0);
  commlens_begin("inner");
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  commlens_end("inner");
  commlens_end("work");
  return none;
}

int main(int argc, char** argv) {
  int provided = 0;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  printf("child %d\n", status);
  MPI_Finalize();
  return 0;
}
