/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs here do alike.  A program is called with positive whole numbers only.  It checks its own result on
 * every rank: if all is right it prints "NAME ok VALUE" and ends with 0, else it says so in a line on stderr and ends
 * with 1.  What cannot be run is a line on stderr, too, and 2.  Each has its calls written down in bench/apps.py. */
#ifndef BENCH_APPS_APP_H
#define BENCH_APPS_APP_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks; /* in MPI_COMM_WORLD */
static char app_name[32];
static long app_faults;

/* All ranks come here, or none. */
static inline _Noreturn void app_refuse(const char* why) {
  if (rank == 0) fprintf(stderr, "%s: %s\n", app_name, why);
  MPI_Finalize();
  exit(2);
}

/* Returns the arguments; `usage` is the name of the program and theirs. */
static inline const long* app_begin(int argc, char** argv, const char* usage) {
  static long values[4];
  int wanted = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  sscanf(usage, "%31s", app_name);
  for (const char* c = usage; *c != '\0'; ++c) wanted += *c == ' ';
  int right = argc == wanted + 1;
  for (int i = 1; right && i < argc; ++i) {
    char* end;
    values[i - 1] = strtol(argv[i], &end, 10);
    right = *end == '\0' && values[i - 1] > 0 && values[i - 1] <= 1000000000;
  }
  if (!right) {
    char line[128];
    snprintf(line, sizeof line, "usage: %s, whole numbers from 1 to 1000000000", usage);
    app_refuse(line);
  }
  return values;
}

/* What is written so that a number which is none is wrong, too: never !(a > b). */
static inline void app_check(int right) { app_faults += !right; }

static inline int app_end(double value) {
  long faults;
  MPI_Allreduce(&app_faults, &faults, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && faults == 0) printf("%s ok %.9g\n", app_name, value);
  if (rank == 0 && faults != 0) fprintf(stderr, "%s: wrong: %ld checks failed\n", app_name, faults);
  MPI_Finalize();
  return faults != 0;
}

/* Memory, all zero. */
static inline void* app_array(size_t count, size_t size) {
  void* const array = calloc(count, size);
  if (array == NULL) {
    fprintf(stderr, "%s: no memory for %zu times %zu bytes\n", app_name, count, size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return array;
}

/* The rows of the squarest grid of all ranks, which has no more rows than columns. */
static inline int app_rows(void) {
  int rows = 1;
  for (int divisor = 2; divisor * divisor <= ranks; ++divisor)
    if (ranks % divisor == 0) rows = divisor;
  return rows;
}

/* Numbers that look like chance, the same everywhere: the finalizer of splitmix64. */
static inline uint64_t app_noise(uint64_t index) {
  uint64_t x = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

#endif
