/* SPDX-License-Identifier: Apache-2.0
 * Forks before (argument: early) or after MPI_Init, while another thread says of ever new regions that it is in them;
 * the children do so, too, and are killed when they hang. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { children = 150, names = 60000 };

static atomic_int begun, is_over;

static void tell(const char* who, int i) {
  char name[32];
  snprintf(name, sizeof name, "%s %d", who, i % names);
  commlens_begin_region(commlens_region(name));
  commlens_tag("name", name);
  commlens_record(commlens_metric(name, "1"), 1);
  commlens_end(name);
  commlens_pause();
  commlens_resume();
}

static void* tell_on(void* none) {
  for (; !is_over; ++begun) {
    tell("parent", begun);
    if (begun % 100 == 0) commlens_flush();
  }
  return none;
}

int main(int argc, char** argv) {
  const int is_early = argc > 1 && strcmp(argv[1], "early") == 0;
  int hung = 0;
  pthread_t other;
  if (!is_early) MPI_Init(&argc, &argv);
  pthread_create(&other, NULL, tell_on, NULL);
  while (begun < 100) {
  }
  for (int i = 0; i < children && hung == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (int k = 0; k < 5; ++k) tell("child", i * 5 + k);
      commlens_reset();
      commlens_flush();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung += status != 0;
  }
  is_over = 1;
  pthread_join(other, NULL);
  if (is_early) MPI_Init(&argc, &argv);
  MPI_Finalize();
  printf("%d hung\n", hung);
  return 0;
}
