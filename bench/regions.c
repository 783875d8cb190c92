/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of commlens.h cost, in nanoseconds: prints "ROW|REGIONS|NS" per line.  bench/regions.py starts it
 * without and with commlens, in turns.  A row is timed in blocks, of which the fastest counts, as in calls.c. */
#define _GNU_SOURCE
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <x86intrin.h>

#include "clock.h"

enum { MANY = 100, BLOCKS = 9, ITERATIONS = 1000 };

static char names[MANY][32];
static commlens_region_t handles[MANY];
static commlens_metric_t metrics[MANY];
static volatile uint64_t seen;

/* Stays on the core it is on: the clock and the caches are the same for all rows. */
static void stay(void) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(sched_getcpu(), &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

/* Each does what its row is about `times` times, with n regions. */

static void two_stamps(long times, int n) {
  (void)n;
  for (long i = 0; i < times; ++i) {
    seen = __rdtsc();
    seen = __rdtsc();
  }
}

static void by_name(long times, int n) {
  for (long i = 0; i < times; i += n) {
    for (int k = 0; k < n; ++k) {
      commlens_begin(names[k]);
      commlens_end(names[k]);
    }
  }
}

static void by_handle(long times, int n) {
  for (long i = 0; i < times; i += n) {
    for (int k = 0; k < n; ++k) {
      commlens_begin_region(handles[k]);
      commlens_end_region(handles[k]);
    }
  }
}

static void nested_by_name(long times, int n) {
  for (long i = 0; i < times; i += n) {
    for (int k = 0; k < n; ++k) commlens_begin(names[k]);
    for (int k = n - 1; k >= 0; --k) commlens_end(names[k]);
  }
}

static void nested_by_handle(long times, int n) {
  for (long i = 0; i < times; i += n) {
    for (int k = 0; k < n; ++k) commlens_begin_region(handles[k]);
    for (int k = n - 1; k >= 0; --k) commlens_end_region(handles[k]);
  }
}

static void loop(long times, int mode) {
  for (long i = 0; i < times; i += ITERATIONS) {
    commlens_loop_begin("loop", mode);
    for (int k = 0; k < ITERATIONS; ++k) commlens_loop_iteration();
    commlens_loop_end("loop");
  }
}

static void as_sum(long times, int n) {
  (void)n;
  loop(times, COMMLENS_LOOP_SUM);
}

static void one_by_one(long times, int n) {
  (void)n;
  loop(times, COMMLENS_LOOP_EACH);
}

static void record(long times, int n) {
  for (long i = 0; i < times; i += n) {
    for (int k = 0; k < n; ++k) commlens_record(metrics[k], (double)i);
  }
}

static void send_to_nobody(long times, int n) {
  static double number;
  (void)n;
  for (long i = 0; i < times; ++i) MPI_Send(&number, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

/* What an application does between: 64 KiB of its own data take the place of ours in the first cache. */
__attribute__((noinline)) static void work(long times, int n) {
  static double data[8192];
  (void)n;
  for (long i = 0; i < times; ++i) {
    for (int k = 0; k < 8192; ++k) data[k] = data[k] * 0.5 + 1;
    __asm__ volatile("" ::: "memory");
  }
}

static void by_name_around_work(long times, int n) {
  for (long i = 0; i < times; ++i) {
    commlens_begin(names[i % n]);
    work(1, 0);
    commlens_end(names[i % n]);
  }
}

static void by_handle_around_work(long times, int n) {
  for (long i = 0; i < times; ++i) {
    commlens_begin_region(handles[i % n]);
    work(1, 0);
    commlens_end_region(handles[i % n]);
  }
}

struct row {
  const char* name;
  void (*does)(long times, int n);
  int regions[4]; /* zero ends */
  const char* within;
};

static void measure(const struct row* row, int n) {
  const long times = 20000; /* a millisecond or so: reading the clock does not matter, and few blocks are disturbed */
  double best = 0;
  if (row->within != NULL) commlens_begin(row->within);
  for (int block = 0; block <= BLOCKS * 5; ++block) { /* the first one warms up */
    const double start = now_ns();
    row->does(times, n);
    const double ns = (now_ns() - start) / (double)times;
    if (block == 1 || (block > 1 && ns < best)) best = ns;
  }
  if (row->within != NULL) commlens_end(row->within);
  printf("%s|%d|%.2f\n", row->name, n, best);
}

/* Every iteration of the first time has a counter of its own to be made: no block is like another. */
static void measure_first_time(void) {
  double best = 0;
  for (int block = 0; block <= BLOCKS; ++block) {
    commlens_begin("execution"); /* of which each one keeps its iterations apart */
    const double start = now_ns();
    loop(ITERATIONS, COMMLENS_LOOP_EACH);
    const double ns = (now_ns() - start) / ITERATIONS;
    commlens_end("execution");
    if (block == 1 || (block > 1 && ns < best)) best = ns;
  }
  printf("iteration, one by one, each for the first time|1|%.2f\n", best);
}

/* Work with regions and without in turns, in short blocks: the difference is a hundredth of either. */
static void measure_around_work(const char* name, void (*does)(long times, int n), int n) {
  const long times = 100;
  double best[2] = {0, 0};
  for (int block = 0; block <= 600; ++block) {
    for (int with = 0; with < 2; ++with) {
      const double start = now_ns();
      (with ? does : work)(times, n);
      const double ns = (now_ns() - start) / (double)times;
      if (block == 1 || (block > 1 && ns < best[with])) best[with] = ns;
    }
  }
  printf("%s|%d|%.2f\n", name, n, best[1] - best[0]);
}

int main(int argc, char** argv) {
  static const struct row rows[] = {
      {"two time stamps", two_stamps, {1}, NULL},
      {"pair by name, one after the other", by_name, {1, 10, 100}, NULL},
      {"pair by handle, one after the other", by_handle, {1, 10, 100}, NULL},
      {"pair by name, within each other", nested_by_name, {1, 10, 100}, NULL},
      {"pair by handle, within each other", nested_by_handle, {1, 10, 100}, NULL},
      {"iteration, as a sum", as_sum, {1}, "loops"},
      {"iteration, one by one", one_by_one, {1}, "loops"},
      {"value of a metric", record, {1, 10, 100}, "metrics"},
      {"MPI_Send to MPI_PROC_NULL, in no region", send_to_nobody, {1}, NULL},
      {"MPI_Send to MPI_PROC_NULL, in a region", send_to_nobody, {1}, "calls"},
  };
  MPI_Init(&argc, &argv);
  stay();
  for (int i = 0; i < MANY; ++i) {
    snprintf(names[i], sizeof names[i], "region_of_the_program_%d", i);
    handles[i] = commlens_region(names[i]);
    metrics[i] = commlens_metric(names[i], "1");
  }
  measure_first_time();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    for (const int* n = rows[i].regions; *n != 0 && n < rows[i].regions + 4; ++n) measure(&rows[i], *n);
  }
  measure_around_work("pair by name around work on 64 KiB", by_name_around_work, 10);
  measure_around_work("pair by handle around work on 64 KiB", by_handle_around_work, 10);
  MPI_Finalize();
  return 0;
}
