/* SPDX-License-Identifier: Apache-2.0
 * Regions as they should not be, one way a run: `odd_regions HOW`.  Each rank then makes 3 barriers in region "work"
 * and 2 outside all regions that it has begun. */
#define _GNU_SOURCE
#include <commlens.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf back;

static void* begin_elsewhere(void* over) {
  commlens_begin("elsewhere");
  pthread_barrier_wait(over);
  pthread_barrier_wait(over);
  return NULL;
}

static void fall(int n) {
  commlens_begin("falling");
  if (n == 0) longjmp(back, 1);
  fall(n - 1);
  commlens_end("falling");
}

static void end_region_of_another_thread(void) {
  pthread_t thread;
  pthread_barrier_t over;
  pthread_barrier_init(&over, NULL, 2);
  pthread_create(&thread, NULL, begin_elsewhere, &over);
  pthread_barrier_wait(&over);
  commlens_end("elsewhere");
  pthread_barrier_wait(&over);
  pthread_join(thread, NULL);
}

static void begin_odd_names(void) {
  char name[10001];
  commlens_begin("");
  commlens_end("");
  commlens_begin(NULL);
  commlens_end(NULL);
  commlens_begin_region(commlens_region(NULL));
  commlens_end_region(commlens_region(""));
  for (int bytes = 255; bytes <= 10000; bytes = bytes == 255 ? 256 : bytes == 256 ? 10000 : 10001) {
    memset(name, 'x', (size_t)bytes);
    name[bytes] = '\0';
    commlens_begin(name);
    commlens_end(name);
  }
  commlens_begin("not \xff\xfe UTF-8 \xc3");
  commlens_end("not \xff\xfe UTF-8 \xc3");
}

static void record_odd_values(void) {
  const commlens_metric_t metric = commlens_metric("energy", "J");
  commlens_record(metric, NAN);
  commlens_record(metric, -INFINITY);
  commlens_record(metric, 2.5);
  commlens_record(metric, -1e308);
  commlens_record(metric, -1e308);
  commlens_record(commlens_metric("energy", "kJ"), 1);
  commlens_record(commlens_metric(NULL, NULL), 1);
  commlens_record(NULL, 1);
  commlens_tag(NULL, "x");
  commlens_tag("x", NULL);
}

static void begin_in_a_child(void) {
  commlens_begin("forks");
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 100; ++i) {
      commlens_begin("in the child");
      commlens_end("in the child");
    }
    commlens_end("forks");
    commlens_pause();
    commlens_reset();
    _exit(commlens_flush() == 1 && commlens_active() == 0 ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  if (status != 0) abort();
  commlens_end("forks");
}

static void do_oddly(const char* how, int rank) {
  if (strcmp(how, "no_begin") == 0) {
    commlens_end("never begun");
    commlens_end(NULL);
  } else if (strcmp(how, "no_end") == 0) {
    commlens_begin("outer");
    commlens_begin("inner");
    commlens_end("outer");
  } else if (strcmp(how, "other_thread") == 0) {
    end_region_of_another_thread();
  } else if (strcmp(how, "names") == 0) {
    begin_odd_names();
  } else if (strcmp(how, "million") == 0) {
    char name[32];
    for (int i = 0; i < 1000000; ++i) {
      snprintf(name, sizeof name, "name %d", i);
      commlens_begin(name);
      commlens_end(name);
    }
  } else if (strcmp(how, "deep") == 0) {
    for (int i = 0; i < 1000; ++i) commlens_begin("deeper");
    MPI_Barrier(MPI_COMM_SELF);
    for (int i = 0; i < 1000; ++i) commlens_end("deeper");
  } else if (strcmp(how, "values") == 0) {
    record_odd_values();
  } else if (strcmp(how, "no_loop") == 0) {
    commlens_begin("no loop");
    commlens_loop_iteration();
    commlens_end("no loop");
    commlens_loop_iteration();
  } else if (strcmp(how, "longjmp") == 0) {
    commlens_begin("catcher");
    if (setjmp(back) == 0) fall(5);
    MPI_Barrier(MPI_COMM_SELF);
    commlens_end("catcher");
  } else if (strcmp(how, "fork") == 0) {
    begin_in_a_child();
  } else if (strcmp(how, "one") == 0) {
    if (rank == 1) commlens_end("only here");
  }
}

int main(int argc, char** argv) {
  const char* const how = argv[1];
  int rank;
  if (strcmp(how, "around") == 0) commlens_begin("whole");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  do_oddly(how, rank);
  commlens_begin("work");
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  commlens_end("work");
  for (int i = 0; i < 2; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (strcmp(how, "around") == 0) {
    commlens_end("whole");
    commlens_begin("after");
    commlens_end("after");
    commlens_pause();
    commlens_resume();
    commlens_reset();
    if (commlens_flush() != 1 || commlens_active() != 0) return 1;
  }
  return 0;
}
